"""A group with a clock and an ear: sends requests, keeps the answers, checks that each is one."""

from collections.abc import Mapping
from itertools import count

from headrace.coordinators.groups.classic.group import ClassicGroup
from headrace.coordinators.groups.consumer_protocol import Subscription, encode_subscription
from headrace.coordinators.groups.limits import ClassicLimits
from headrace.coordinators.groups.messages import (
    GroupOutcome,
    JoinReply,
    JoinRequest,
    LeaveResult,
    LeavingMember,
    SyncReply,
    SyncRequest,
    Ticket,
)
from headrace.coordinators.groups.records import GroupMetadata, GroupRecord

NOW_MS = 1_700_000_000_000
SESSION_MS = 10_000
REBALANCE_MS = 60_000
LIMITS = ClassicLimits(
    min_session_timeout_ms=6_000,
    max_session_timeout_ms=1_800_000,
    max_size=1_000,
    initial_rebalance_delay_ms=0,
)
READS_T = encode_subscription(Subscription(("t",)))
RANGE = (("range", READS_T),)


class Driver:
    """Every step returns at once; an answer is looked up by the ticket of its request."""

    def __init__(self, group: ClassicGroup | None = None, **limits: int) -> None:
        self.now_ms = NOW_MS
        self._ids = count(1)
        self._tickets = count(1)
        self.limits = LIMITS._replace(**limits)
        self.group = group or ClassicGroup(
            "g", self.limits, make_member_id=self.make_member_id, now_ms=NOW_MS
        )
        self.answers: dict[Ticket, JoinReply | SyncReply] = {}
        self.records: list[GroupRecord] = []
        self.outcomes: list[GroupOutcome] = []

    def make_member_id(self, name: str) -> str:
        return f"{name}-{next(self._ids)}"

    def take(self, outcome: GroupOutcome) -> GroupOutcome:
        self.outcomes.append(outcome)
        self.records += outcome.records
        for ticket, reply in outcome.answers:
            assert ticket not in self.answers, "a request was answered twice"
            self.answers[ticket] = reply
        return outcome

    def join(
        self,
        member_id: str = "",
        *,
        instance: str | None = None,
        protocols: tuple[tuple[str, bytes], ...] = RANGE,
        protocol_type: str = "consumer",
        session_ms: int = SESSION_MS,
        rebalance_ms: int = REBALANCE_MS,
        version: int = 9,
    ) -> str:
        """Send a join; return its ticket."""
        ticket = f"join {next(self._tickets)}"
        request = JoinRequest(
            "g",
            member_id,
            instance,
            "client",
            "/127.0.0.1",
            session_ms,
            rebalance_ms,
            protocol_type,
            protocols,
            must_know_its_id=version >= 4,
            can_skip_assignment=version >= 9,
        )
        self.take(self.group.join(request, ticket, self.now_ms))
        return ticket

    def sync(
        self,
        member_id: str,
        assignments: Mapping[str, bytes] | None = None,
        *,
        instance: str | None = None,
        generation: int | None = None,
        protocol_type: str | None = "consumer",
        protocol_name: str | None = "range",
    ) -> str:
        """Send a sync, with everyone's assignment if it is the leader's; return its ticket."""
        ticket = f"sync {next(self._tickets)}"
        request = SyncRequest(
            "g",
            self.group.generation_id if generation is None else generation,
            member_id,
            instance,
            protocol_type,
            protocol_name,
            tuple((assignments or {}).items()),
        )
        self.take(self.group.sync(request, ticket, self.now_ms))
        return ticket

    def heartbeat(
        self, member_id: str, *, instance: str | None = None, generation: int | None = None
    ) -> None:
        current = self.group.generation_id
        self.group.heartbeat(
            member_id, instance, current if generation is None else generation, self.now_ms
        )

    def commit(
        self,
        member_id: str,
        *,
        instance: str | None = None,
        generation: int | None = None,
        is_transactional: bool = False,
    ) -> None:
        self.group.check_commit(
            member_id,
            instance,
            self.group.generation_id if generation is None else generation,
            self.now_ms,
            is_transactional=is_transactional,
        )

    def leave(self, member_id: str, *, instance: str | None = None) -> LeaveResult:
        return self.leave_all(LeavingMember(member_id, instance))[0]

    def leave_all(self, *leaving: LeavingMember) -> list[LeaveResult]:
        results, outcome = self.group.leave(leaving, self.now_ms)
        self.take(outcome)
        return results

    def pass_time(self, ms: int) -> None:
        """Let time pass, stopping wherever the group wants to be woken, and only there."""
        end_ms = self.now_ms + ms
        while (due_ms := self.group.next_deadline_ms) is not None and due_ms <= end_ms:
            self.now_ms = max(self.now_ms, due_ms)
            self.take(self.group.tick(self.now_ms))
        self.now_ms = end_ms

    def joined(self, ticket: Ticket) -> JoinReply:
        """The answer to a join, which must have been a success."""
        reply = self.join_reply(ticket)
        assert reply.error is None, reply.error
        return reply

    def join_reply(self, ticket: Ticket) -> JoinReply:
        reply = self.answers[ticket]
        assert isinstance(reply, JoinReply)
        return reply

    def sync_reply(self, ticket: Ticket) -> SyncReply:
        reply = self.answers[ticket]
        assert isinstance(reply, SyncReply)
        return reply

    def is_parked(self, ticket: Ticket) -> bool:
        return ticket not in self.answers

    def last_record(self) -> GroupMetadata:
        record = self.records[-1]
        assert isinstance(record, GroupMetadata)
        return record

    def new_member_id(self) -> str:
        """Be sent back for an id."""
        return self.join_reply(self.join()).member_id

    def stable(self, count: int = 1, *, instances: bool = False) -> list[str]:
        """Bring `count` members into a Stable group; return their ids, the leader's first.

        They are called client-1 or i1-1 and so on; member n was assigned b"n".
        """
        first = self.join(version=3, instance="i1" if instances else None)
        members = [self.joined(first).member_id]
        for number in range(2, count + 1):
            rejoins = [self.join(version=3, instance=f"i{number}" if instances else None)]
            rejoins += [self.join(member, instance=self._instance(member)) for member in members]
            members.append(self.joined(rejoins[0]).member_id)
        assignments = {member: str(number).encode() for number, member in enumerate(members, 1)}
        self.sync(members[0], assignments, instance=self._instance(members[0]))
        for member in members[1:]:
            self.sync(member, instance=self._instance(member))
        assert self.group.state == "Stable"
        return members

    def _instance(self, member_id: str) -> str | None:
        return self.group.members[member_id].group_instance_id

    def restored(self, record: GroupMetadata, **limits: int) -> ClassicGroup:
        """A group as it comes from disk."""
        return ClassicGroup.restore(
            record,
            self.limits._replace(**limits),
            make_member_id=self.make_member_id,
            now_ms=self.now_ms,
        )
