"""What groups are asked and what they answer, free of the wire.

Requests that wait for others (a join, a sync) carry a ticket: any object of the caller's
choice, given back with the answer when it comes. `GroupOutcome` is what every step returns: records
to write before anyone is answered, and the answers, each with its ticket.
"""

from dataclasses import dataclass, field
from typing import NamedTuple, Protocol
from uuid import UUID

from headrace.coordinators.errors import GroupError
from headrace.coordinators.groups.records import Assignment, GroupRecord

NO_GENERATION = -1
NO_EPOCH = -1
CONSUMER_PROTOCOL_TYPE = "consumer"

Ticket = object


class JoinRequest(NamedTuple):
    """A member, new or known, wants to be in the next generation."""

    group_id: str
    member_id: str  # empty: new
    group_instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: tuple[tuple[str, bytes], ...]  # by preference: (name, metadata)
    reason: str | None = None
    must_know_its_id: bool = True  # v4+ (KIP-394): a dynamic newcomer is sent back with an id
    can_skip_assignment: bool = True  # v9+ (KIP-814)


class JoinedMember(NamedTuple):
    """A member as the leader is told of it."""

    member_id: str
    group_instance_id: str | None
    metadata: bytes


class JoinReply(NamedTuple):
    """How a join ended; `error` None is a success."""

    error: GroupError | None
    member_id: str = ""
    generation_id: int = NO_GENERATION
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = ""
    members: tuple[JoinedMember, ...] = ()  # for the leader only
    skip_assignment: bool = False


class SyncRequest(NamedTuple):
    """A joined member asks for its assignment; the leader brings all of them."""

    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: tuple[tuple[str, bytes], ...] = ()


class SyncReply(NamedTuple):
    """How a sync ended."""

    error: GroupError | None
    assignment: bytes = b""
    protocol_type: str | None = None
    protocol_name: str | None = None


class LeavingMember(NamedTuple):
    """One who leaves, or an instance that an administrator removes (empty member id)."""

    member_id: str
    group_instance_id: str | None = None
    reason: str | None = None


class LeaveResult(NamedTuple):
    """What became of one `LeavingMember`."""

    member_id: str
    group_instance_id: str | None
    error: GroupError | None


class ConsumerHeartbeatRequest(NamedTuple):
    """A heartbeat of the new protocol (KIP-848). None means "as before"."""

    group_id: str
    member_id: str
    member_epoch: int  # 0 joins, -1 leaves, -2 leaves for a while (static)
    instance_id: str | None
    rack_id: str | None
    rebalance_timeout_ms: int  # -1: as before
    topic_names: tuple[str, ...] | None
    topic_regex: str | None  # empty: no longer
    server_assignor: str | None
    owned: Assignment | None
    client_id: str
    client_host: str
    makes_its_id: bool = True  # v1+: an empty member id is an error


class ConsumerHeartbeatReply(NamedTuple):
    """What a member is told; `assignment` None means "as before"."""

    member_id: str
    member_epoch: int
    heartbeat_interval_ms: int
    assignment: Assignment | None


class OffsetCommitter(NamedTuple):
    """Who commits. A generation or epoch below 0 and no member id is nobody in particular."""

    group_id: str
    member_id: str = ""
    group_instance_id: str | None = None
    generation_id_or_member_epoch: int = -1
    knows_epochs: bool = True  # v9+ (KIP-848)


class CommitTime(NamedTuple):
    """When: by the steady clock for sessions, by the wall clock for what is written."""

    now_ms: int
    timestamp_ms: int


class DescribedMember(NamedTuple):
    """A member as DescribeGroups shows it."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


class DescribedGroup(NamedTuple):
    """A classic group as DescribeGroups shows it."""

    group_id: str
    state: str
    protocol_type: str
    protocol_name: str
    members: tuple[DescribedMember, ...]


class DescribedConsumer(NamedTuple):
    """A member as ConsumerGroupDescribe shows it."""

    member_id: str
    instance_id: str | None
    rack_id: str | None
    member_epoch: int
    client_id: str
    client_host: str
    topic_names: tuple[str, ...]
    topic_regex: str | None
    assignment: Assignment
    target_assignment: Assignment
    member_type: int  # 0 classic, 1 consumer


class DescribedConsumerGroup(NamedTuple):
    """A group of the new protocol as ConsumerGroupDescribe shows it."""

    group_id: str
    state: str
    epoch: int
    assignment_epoch: int
    assignor: str
    members: tuple[DescribedConsumer, ...]


class GroupSummary(NamedTuple):
    """A group as ListGroups shows it."""

    group_id: str
    protocol_type: str
    state: str
    group_type: str  # "classic" or "consumer"


class TopicShape(NamedTuple):
    """What an assignor needs to know of a topic."""

    topic_id: UUID
    name: str
    partition_count: int


class TopicsView(Protocol):
    """The topics there are, as the broker shows them to groups."""

    @property
    def generation(self) -> int:
        """Changes whenever a topic does."""

    def shape(self, name: str) -> TopicShape | None:
        """The topic of this name, or None."""

    def shape_by_id(self, topic_id: UUID) -> TopicShape | None:
        """The topic with this id, or None."""

    def names(self) -> frozenset[str]:
        """All topics, internal ones too; the same object until a topic comes or goes."""


@dataclass(slots=True)
class GroupOutcome:
    """What a step wants done, in this order: write `records`, then give `answers`."""

    records: list[GroupRecord] = field(default_factory=list)
    answers: list[tuple[Ticket, JoinReply | SyncReply]] = field(default_factory=list)
