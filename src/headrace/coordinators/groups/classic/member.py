"""One member of a classic group."""

from collections.abc import Collection

from headrace.coordinators.groups.messages import DescribedMember, Ticket
from headrace.coordinators.groups.records import ClassicMember

Protocols = tuple[tuple[str, bytes], ...]


class Member:
    """What a group knows of a member. A ticket is there while its request is parked."""

    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "deadline_ms",
        "group_instance_id",
        "is_new",
        "join_ticket",
        "member_id",
        "protocols",
        "rebalance_timeout_ms",
        "session_timeout_ms",
        "sync_ticket",
    )

    def __init__(
        self,
        member_id: str,
        group_instance_id: str | None,
        client_id: str,
        client_host: str,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        protocols: Protocols,
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocols = protocols
        self.assignment = assignment
        self.deadline_ms = 0
        self.is_new = False  # has not been part of a generation yet
        self.join_ticket: Ticket | None = None
        self.sync_ticket: Ticket | None = None

    @classmethod
    def restore(cls, record: ClassicMember, protocols: Protocols) -> "Member":
        """The member as it was written down."""
        rebalance_timeout_ms = record.rebalance_timeout_ms
        if rebalance_timeout_ms == -1:  # the record is older than the field
            rebalance_timeout_ms = record.session_timeout_ms
        return cls(
            record.member_id,
            record.group_instance_id,
            record.client_id,
            record.client_host,
            rebalance_timeout_ms,
            record.session_timeout_ms,
            protocols,
            record.assignment,
        )

    @property
    def is_static(self) -> bool:
        """It has a group.instance.id (KIP-345)."""
        return self.group_instance_id is not None

    @property
    def can_expire(self) -> bool:
        """Whose request is parked cannot send heartbeats, so its session does not end.

        A new member has no session yet, but it may have gone while it waits: it can expire.
        """
        return self.is_new or (self.join_ticket is None and self.sync_ticket is None)

    def metadata(self, protocol_name: str | None) -> bytes:
        """What the member said under this protocol."""
        return next((said for name, said in self.protocols if name == protocol_name), b"")

    def vote(self, candidates: Collection[str]) -> str:
        """The candidate that the member likes best; there is one, or it would not be in."""
        return next(name for name, _ in self.protocols if name in candidates)

    def record(self, protocol_name: str | None) -> ClassicMember:
        """The member as it is written down."""
        return ClassicMember(
            self.member_id,
            self.group_instance_id,
            self.client_id,
            self.client_host,
            self.rebalance_timeout_ms,
            self.session_timeout_ms,
            self.metadata(protocol_name),
            self.assignment,
        )

    def describe(self, protocol_name: str | None) -> DescribedMember:
        """The member as DescribeGroups shows it; without a protocol there is no metadata."""
        return DescribedMember(
            self.member_id,
            self.group_instance_id,
            self.client_id,
            self.client_host,
            self.metadata(protocol_name),
            self.assignment,
        )
