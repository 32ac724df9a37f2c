"""A coordinator whose log is a list: decisions are carried out as the broker does, but no disk."""

import itertools
from typing import TypeVar
from uuid import UUID

from headrace.coordinators.errors import CoordinatorNotAvailableError
from headrace.coordinators.groups.consumer_protocol import (
    MemberAssignment,
    Subscription,
    encode_assignment,
    encode_subscription,
)
from headrace.coordinators.groups.coordinator import GroupCoordinator
from headrace.coordinators.groups.decision import Decision
from headrace.coordinators.groups.limits import ClassicLimits, ConsumerLimits
from headrace.coordinators.groups.messages import (
    ConsumerHeartbeatReply,
    ConsumerHeartbeatRequest,
    JoinReply,
    JoinRequest,
    SyncReply,
    SyncRequest,
    TopicShape,
)
from headrace.coordinators.groups.records import GroupRecord
from headrace.coordinators.groups.registry import GroupEnvironment

_Reply = TypeVar("_Reply")

START_MS = 1_000_000
SESSION_MS = 10_000
TOPIC_ID = UUID(int=1)
ALL_OF_T = encode_assignment(MemberAssignment({"t": (0, 1, 2)}))


class FakeTopics:
    """One topic `t` of three partitions, until a test says otherwise."""

    def __init__(self) -> None:
        self.generation = 0
        self.by_name = {"t": TopicShape(TOPIC_ID, "t", 3)}

    def shape(self, name: str) -> TopicShape | None:
        return self.by_name.get(name)

    def shape_by_id(self, topic_id: UUID) -> TopicShape | None:
        return next((one for one in self.by_name.values() if one.topic_id == topic_id), None)

    def names(self) -> frozenset[str]:
        return frozenset(self.by_name)


class Desk:
    """What the broker is to the coordinator."""

    def __init__(self) -> None:
        ids = itertools.count(1)
        self.topics = FakeTopics()
        self.environment = GroupEnvironment(
            self.topics,
            lambda: ClassicLimits(6_000, 1_800_000, 100, 0),
            lambda group_id: ConsumerLimits(session_timeout_ms=SESSION_MS),
            lambda client: f"{client}-{next(ids)}",
            lambda client: f"id-{next(ids)}",
        )
        self.coordinator = GroupCoordinator(self.environment)
        self.now_ms = START_MS
        self.log: list[GroupRecord] = []
        self.answers: dict[object, JoinReply | SyncReply] = {}
        self.is_disk_full = False

    def carry_out(self, decision: Decision[_Reply]) -> _Reply:
        if self.is_disk_full and decision.records:
            error = CoordinatorNotAvailableError("full")
            undone = decision.on_failed(self.now_ms)
            self.answers |= {one: reply._replace(error=error) for one, reply in decision.answers}
            self.answers |= dict(undone.answers)
            raise error
        self.log += decision.records
        decision.on_written()
        self.answers |= dict(decision.answers)
        return decision.reply

    def let_pass(self, ms: int) -> None:
        self.now_ms += ms
        for decision in self.coordinator.tick(self.now_ms):
            self.carry_out(decision)

    def restarted(self) -> "Desk":
        """Another coordinator that has read the same log."""
        desk = Desk()
        desk.topics, desk.now_ms, desk.log = self.topics, self.now_ms, list(self.log)
        desk.coordinator.registry.apply_all(desk.log, desk.now_ms)
        desk.coordinator.registry.loaded({record.group_id for record in desk.log}, desk.now_ms)
        return desk

    # --- members

    def join(self, group_id: str, member_id: str = "", ticket: object = "join") -> JoinReply | None:
        """Ask to join; None while the answer is out."""
        request = JoinRequest(
            group_id,
            member_id,
            None,
            "client",
            "/127.0.0.1",
            SESSION_MS,
            SESSION_MS,
            "consumer",
            (("range", encode_subscription(Subscription(("t",), version=1))),),
            must_know_its_id=False,
        )
        self.answers.pop(ticket, None)
        self.carry_out(self.coordinator.join(request, ticket, self.now_ms))
        reply = self.answers.get(ticket)
        assert reply is None or isinstance(reply, JoinReply)
        return reply

    def sync(self, group_id: str, joined: JoinReply) -> SyncReply | None:
        """Bring assignments, as the leader does."""
        request = SyncRequest(
            group_id,
            joined.generation_id,
            joined.member_id,
            None,
            "consumer",
            "range",
            tuple((member.member_id, ALL_OF_T) for member in joined.members),
        )
        self.answers.pop("sync", None)
        self.carry_out(self.coordinator.sync(request, "sync", self.now_ms))
        reply = self.answers.get("sync")
        assert reply is None or isinstance(reply, SyncReply)
        return reply

    def stable_member(self, group_id: str) -> str:
        """Make a stable classic group of one member; its id."""
        joined = self.join(group_id)
        assert joined is not None
        assert joined.error is None
        synced = self.sync(group_id, joined)
        assert synced is not None
        assert synced.error is None
        return joined.member_id

    def beat(self, group_id: str, member_id: str, epoch: int = 0) -> ConsumerHeartbeatReply:
        """A heartbeat of the new protocol; epoch 0 joins, reading `t`."""
        is_joining = epoch == 0
        request = ConsumerHeartbeatRequest(
            group_id,
            member_id,
            epoch,
            None,
            None,
            SESSION_MS if is_joining else -1,
            ("t",) if is_joining else None,
            None,
            None,
            {} if is_joining else None,
            "client",
            "/127.0.0.1",
        )
        return self.carry_out(self.coordinator.consumer_heartbeat(request, self.now_ms))
