"""What groups write to `__consumer_offsets`: one value for each kind of record there is.

`codec` turns them into the bytes of Kafka's schemas and back. A tombstone is a record with a
key and no value: here `Tombstone`, which names the key of the record it removes.
"""

from typing import NamedTuple
from uuid import UUID

# Partitions by topic id, as the new protocol keeps them.
Assignment = dict[UUID, tuple[int, ...]]


class OffsetCommit(NamedTuple):
    """How far a group has read one partition."""

    group_id: str
    topic: str
    partition: int
    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    commit_timestamp_ms: int = -1
    expire_timestamp_ms: int = -1  # -1: by the broker's retention
    topic_id: UUID | None = None


class ClassicMember(NamedTuple):
    """A member of a classic group, as written down."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes


class GroupMetadata(NamedTuple):
    """A classic group at the end of a rebalance."""

    group_id: str
    protocol_type: str
    generation_id: int
    protocol_name: str | None
    leader: str | None
    state_timestamp_ms: int
    members: tuple[ClassicMember, ...]


class ConsumerGroupMetadata(NamedTuple):
    """The epoch of a group of the new protocol (KIP-848)."""

    group_id: str
    epoch: int
    metadata_hash: int = 0


class ClassicProtocols(NamedTuple):
    """What a classic member of a new group brought along, for the way back."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]


class ConsumerGroupMember(NamedTuple):
    """What a member of a new group subscribes to."""

    group_id: str
    member_id: str
    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    topic_names: tuple[str, ...]
    topic_regex: str | None
    rebalance_timeout_ms: int
    server_assignor: str | None
    classic: ClassicProtocols | None = None


class TargetAssignmentEpoch(NamedTuple):
    """The group epoch that the target assignment was made for."""

    group_id: str
    epoch: int
    timestamp_ms: int = 0


class TargetAssignmentMember(NamedTuple):
    """What one member shall have."""

    group_id: str
    member_id: str
    partitions: Assignment


class CurrentAssignment(NamedTuple):
    """What one member has, and what it still has to give up.

    `assigned_epochs` runs parallel to `assigned`: the epoch at which each partition was given.
    """

    group_id: str
    member_id: str
    member_epoch: int
    previous_member_epoch: int
    state: int
    assigned: Assignment
    pending_revocation: Assignment
    assigned_epochs: Assignment | None = None
    pending_epochs: Assignment | None = None


class ResolvedRegex(NamedTuple):
    """The topics that a regular expression matched."""

    group_id: str
    regex: str
    topics: tuple[str, ...]
    version: int
    timestamp_ms: int


class Tombstone(NamedTuple):
    """The end of a record: `kind` is its class, `key` the fields that its key is made of."""

    kind: type
    key: tuple[str | int, ...]

    @property
    def group_id(self) -> str:
        """The group it is about."""
        return str(self.key[0])


GroupRecord = (
    OffsetCommit
    | GroupMetadata
    | ConsumerGroupMetadata
    | ConsumerGroupMember
    | TargetAssignmentEpoch
    | TargetAssignmentMember
    | CurrentAssignment
    | ResolvedRegex
    | Tombstone
)
