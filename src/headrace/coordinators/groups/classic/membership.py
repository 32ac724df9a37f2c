"""Who is in a classic group: members, their instances, who is expected, and who leads.

Invariant: `waiting_count` is the number of members with a parked join, and `_supporters` the
number of members that know each protocol; so both questions cost the same in a large group.
"""

from collections import Counter
from collections.abc import Iterator

from headrace.coordinators.errors import FencedInstanceError, UnknownMemberError
from headrace.coordinators.groups.classic.member import Member, Protocols
from headrace.coordinators.groups.messages import JoinedMember, JoinRequest, Ticket


class Membership:
    """The members by id, in the order in which they came."""

    def __init__(self) -> None:
        self.by_id: dict[str, Member] = {}
        self.leader: str | None = None
        self.protocol_type: str | None = None
        # Sent back for their id (KIP-394) and expected to come again, each until its deadline.
        self.pending: dict[str, int] = {}
        self.waiting_count = 0
        self._member_ids: dict[str, str] = {}  # by group.instance.id
        self._supporters: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self.by_id)

    def __iter__(self) -> Iterator[Member]:
        return iter(self.by_id.values())

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest that any member asked for."""
        return max((member.rebalance_timeout_ms for member in self), default=0)

    @property
    def have_all_joined(self) -> bool:
        """Nobody is missing, nor expected."""
        return self.waiting_count == len(self.by_id) and not self.pending

    def member_id_of(self, group_instance_id: str) -> str | None:
        """The member that has this instance id now."""
        return self._member_ids.get(group_instance_id)

    def check(self, member_id: str, group_instance_id: str | None) -> Member:
        """Return the member, or raise what Kafka says to one who is not, or no longer."""
        if group_instance_id is not None:
            current = self._member_ids.get(group_instance_id)
            if current is None:
                raise UnknownMemberError(f"no member has instance id {group_instance_id}")
            if current != member_id:
                raise FencedInstanceError(
                    f"instance {group_instance_id} is now member {current}, not {member_id}"
                )
        member = self.by_id.get(member_id)
        if member is None:
            raise UnknownMemberError(f"the group has no member {member_id}")
        return member

    def add(self, member: Member, protocol_type: str | None) -> None:
        """Take a member in. The first one decides the protocol type and leads."""
        if not self.by_id:
            self.protocol_type = protocol_type
        if self.leader is None:
            self.leader = member.member_id
        self.pending.pop(member.member_id, None)
        self.by_id[member.member_id] = member
        if member.group_instance_id is not None:
            self._member_ids[member.group_instance_id] = member.member_id
        self._supporters.update(_names(member.protocols))

    def remove(self, member_id: str) -> None:
        """Let go of a member or an expected one. Its tickets must have been answered."""
        self.pending.pop(member_id, None)
        member = self.by_id.pop(member_id, None)
        if member is None:
            return
        self._count_out(member.protocols)
        if member.group_instance_id is not None:
            del self._member_ids[member.group_instance_id]
        if self.leader == member_id:
            self.leader = next(iter(self.by_id), None)

    def rename(self, member: Member, member_id: str) -> None:
        """A static member came back under a new id, to all it had, the lead included."""
        if self.leader == member.member_id:
            self.leader = member_id
        del self.by_id[member.member_id]
        member.member_id = member_id
        self.by_id[member_id] = member
        assert member.group_instance_id is not None
        self._member_ids[member.group_instance_id] = member_id

    def update(
        self,
        member: Member,
        protocols: Protocols,
        session_timeout_ms: int,
        rebalance_timeout_ms: int,
    ) -> None:
        """The member joins again, perhaps with something else to say."""
        self._count_out(member.protocols)
        self._supporters.update(_names(protocols))
        member.protocols = protocols
        member.session_timeout_ms = session_timeout_ms
        member.rebalance_timeout_ms = rebalance_timeout_ms

    def park_join(self, member: Member, ticket: Ticket) -> Ticket | None:
        """Keep a join until it is answered; return the one that it supersedes."""
        superseded, member.join_ticket = member.join_ticket, ticket
        self.waiting_count += superseded is None
        return superseded

    def take_join(self, member: Member) -> Ticket | None:
        """Give out a parked join, to be answered."""
        ticket, member.join_ticket = member.join_ticket, None
        self.waiting_count -= ticket is not None
        return ticket

    def supports(self, request: JoinRequest) -> bool:
        """It has the group's type, and a protocol that every member knows."""
        return request.protocol_type == self.protocol_type and any(
            self._supporters[name] == len(self.by_id) for name, _ in request.protocols
        )

    def choose_protocol(self) -> str:
        """Of the protocols that every member knows, the one most members like best."""
        everyone = len(self.by_id)
        candidates = {name for name, count in self._supporters.items() if count == everyone}
        votes = Counter(member.vote(candidates) for member in self)
        return votes.most_common(1)[0][0]

    def elect_joined_leader(self) -> bool:
        """Keep the leader if it has joined, else take the first that has; False if none has."""
        if self.leader is None:
            return False
        if self.by_id[self.leader].join_ticket is not None:
            return True
        joined = next((member for member in self if member.join_ticket is not None), None)
        if joined is None:
            return False
        self.leader = joined.member_id
        return True

    def as_told_to_leader(self, protocol_name: str | None) -> tuple[JoinedMember, ...]:
        """What the leader makes its assignment from."""
        return tuple(
            JoinedMember(member.member_id, member.group_instance_id, member.metadata(protocol_name))
            for member in self
        )

    def _count_out(self, protocols: Protocols) -> None:
        for name in _names(protocols):
            self._supporters[name] -= 1
            if not self._supporters[name]:
                del self._supporters[name]


def _names(protocols: Protocols) -> set[str]:
    """A client that names a protocol twice supports it once."""
    return {name for name, _ in protocols}
