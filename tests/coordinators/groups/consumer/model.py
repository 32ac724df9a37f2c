"""A group with what surrounds it, and clients that follow the protocol of KIP-848."""

from collections.abc import Iterable
from uuid import UUID

from headrace.coordinators.errors import GroupError
from headrace.coordinators.groups.consumer.group import ConsumerGroup
from headrace.coordinators.groups.limits import ConsumerLimits
from headrace.coordinators.groups.messages import (
    ConsumerHeartbeatReply,
    ConsumerHeartbeatRequest,
    GroupOutcome,
    JoinReply,
    JoinRequest,
    LeaveResult,
    LeavingMember,
    SyncReply,
    SyncRequest,
    TopicShape,
)
from headrace.coordinators.groups.records import Assignment, GroupRecord

GROUP = "group"


class Topics:
    """Topics that a test makes, grows and deletes."""

    def __init__(self, **partition_counts: int) -> None:
        self.generation = 0
        self._made = 0
        self._shapes: dict[str, TopicShape] = {}
        for name, count in partition_counts.items():
            self.create(name, count)

    def create(self, name: str, count: int) -> UUID:
        self._made += 1
        topic_id = UUID(int=self._made)
        self._shapes[name] = TopicShape(topic_id, name, count)
        self.generation += 1
        return topic_id

    def grow(self, name: str, count: int) -> None:
        self._shapes[name] = self._shapes[name]._replace(partition_count=count)
        self.generation += 1

    def delete(self, name: str) -> None:
        del self._shapes[name]
        self.generation += 1

    def id(self, name: str) -> UUID:
        return self._shapes[name].topic_id

    def shape(self, name: str) -> TopicShape | None:
        return self._shapes.get(name)

    def shape_by_id(self, topic_id: UUID) -> TopicShape | None:
        return next((one for one in self._shapes.values() if one.topic_id == topic_id), None)

    def names(self) -> frozenset[str]:
        return frozenset(self._shapes)


class Bench:
    """One group, its topics, its clock and its log. Steps are carried out as the broker does."""

    def __init__(self, topics: Topics, limits: ConsumerLimits | None = None) -> None:
        self.topics = topics
        self.limits = limits or ConsumerLimits(assignment_interval_ms=0)
        self.now_ms = 1_000_000
        self.log: list[GroupRecord] = []
        self.ids_made = 0
        self.writes_fail = False
        self.group = self.new_group()

    def new_group(self) -> ConsumerGroup:
        return ConsumerGroup(GROUP, lambda: self.limits, make_member_id=self._make_member_id)

    def _make_member_id(self, _name: str) -> str:
        self.ids_made += 1
        return f"made-{self.ids_made}"

    def heartbeat(
        self,
        member_id: str,
        epoch: int,
        *,
        instance_id: str | None = None,
        topic_names: Iterable[str] | None = None,
        topic_regex: str | None = None,
        owned: Assignment | None = None,
        rebalance_timeout_ms: int = -1,
        server_assignor: str | None = None,
        rack_id: str | None = None,
        client_host: str = "/127.0.0.1",
        makes_its_id: bool = True,
    ) -> ConsumerHeartbeatReply:
        request = ConsumerHeartbeatRequest(
            GROUP,
            member_id,
            epoch,
            instance_id,
            rack_id,
            rebalance_timeout_ms,
            None if topic_names is None else tuple(topic_names),
            topic_regex,
            server_assignor,
            owned,
            "client",
            client_host,
            makes_its_id,
        )
        reply, outcome = self.group.heartbeat(request, self.topics, self.now_ms)
        self.carry_out(outcome)
        return reply

    def join(
        self, member_id: str, *topic_names: str, instance_id: str | None = None
    ) -> ConsumerHeartbeatReply:
        return self.heartbeat(
            member_id,
            0,
            instance_id=instance_id,
            topic_names=topic_names,
            owned={},
            rebalance_timeout_ms=60_000,
        )

    def resolve(self) -> GroupOutcome:
        """Look for the topics that match, if that is due, as the broker does after a step."""
        resolution = self.group.resolution
        if not resolution.is_due(self.topics):
            return GroupOutcome()
        search = resolution.begin(self.topics)
        for _ in search.steps:
            assert not resolution.is_due(self.topics)
        outcome = resolution.outcome(search, self.topics, self.now_ms)
        self.carry_out(outcome)
        if not self.writes_fail:
            resolution.end(search)
        return outcome

    def tick(self) -> GroupOutcome:
        outcome = self.group.tick(self.topics, self.now_ms)
        self.carry_out(outcome)
        return outcome

    def classic_join(
        self,
        member_id: str,
        metadata: bytes,
        *,
        instance_id: str | None = None,
        protocol: str = "range",
        protocol_type: str = "consumer",
        must_know_its_id: bool = True,
    ) -> tuple[JoinReply, GroupOutcome]:
        request = JoinRequest(
            GROUP,
            member_id,
            instance_id,
            "classic-client",
            "/127.0.0.1",
            10_000,
            20_000,
            protocol_type,
            ((protocol, metadata),),
            must_know_its_id=must_know_its_id,
        )
        outcome = self.group.join(request, "ticket", self.topics, self.now_ms)
        self.carry_out(outcome)
        ((ticket, reply),) = outcome.answers
        assert ticket == "ticket"
        assert isinstance(reply, JoinReply)
        return reply, outcome

    def classic_sync(
        self, member_id: str, generation_id: int, *, protocol_name: str = "range"
    ) -> SyncReply:
        request = SyncRequest(GROUP, generation_id, member_id, None, "consumer", protocol_name)
        outcome = self.group.sync(request, "ticket", self.topics, self.now_ms)
        self.carry_out(outcome)
        ((_, reply),) = outcome.answers
        assert isinstance(reply, SyncReply)
        return reply

    def leave(self, *members: LeavingMember) -> tuple[list[LeaveResult], GroupOutcome]:
        results, outcome = self.group.leave(members, self.topics, self.now_ms)
        self.carry_out(outcome)
        return results, outcome

    def carry_out(self, outcome: GroupOutcome) -> None:
        if self.writes_fail:
            return
        self.log += outcome.records
        for record in outcome.records:
            self.group.apply(record)

    def replayed(self) -> ConsumerGroup:
        group = self.new_group()
        for record in self.log:
            group.apply(record)
        group.loaded(self.now_ms)
        return group


def durable(group: ConsumerGroup) -> dict[str, object]:
    """All that records have made of a group."""
    return dict(vars(group._state))


class Client:
    """A consumer: it gives up before it takes, and says so with its next heartbeat."""

    def __init__(self, bench: Bench, member_id: str, names: Iterable[str]) -> None:
        self.bench, self.member_id, self.names = bench, member_id, tuple(names)
        self.instance_id: str | None = None
        self.epoch = 0
        self.owned: dict[UUID, set[int]] = {}
        self.assigned: Assignment | None = None
        self._must_tell_owned = True

    def heartbeat(self) -> None:
        try:
            self._heartbeat()
        except GroupError:
            # Fenced or unknown: drop everything and begin anew.
            self.epoch, self.owned, self.assigned = 0, {}, None
            self._heartbeat()

    def _heartbeat(self) -> None:
        joins = self.epoch == 0
        owned = {topic: tuple(sorted(found)) for topic, found in self.owned.items() if found}
        reply = self.bench.heartbeat(
            self.member_id,
            self.epoch,
            instance_id=self.instance_id,
            topic_names=self.names if joins else None,
            owned=owned if joins or self._must_tell_owned else None,
            rebalance_timeout_ms=60_000 if joins else -1,
        )
        assert reply.member_epoch >= self.epoch, "a member's epoch went back"
        self.epoch = reply.member_epoch
        self._must_tell_owned = False
        if reply.assignment is not None:
            self.assigned = reply.assignment

    def reconcile(self) -> None:
        """Give up what is not assigned any more, take what is, and tell with the next heartbeat."""
        if self.assigned is not None:
            self.owned = {topic: set(found) for topic, found in self.assigned.items()}
            self.assigned = None
            self._must_tell_owned = True

    def leave(self, epoch: int = -1) -> None:
        self.bench.heartbeat(self.member_id, epoch, instance_id=self.instance_id)
