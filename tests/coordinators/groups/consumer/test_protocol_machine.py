"""Many clients in any order of events: no partition has two owners, and calm brings balance."""

from collections import Counter
from uuid import UUID

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)
from tests.coordinators.groups.consumer.model import Bench, Client, Topics, durable

from headrace.coordinators.groups.consumer.state import STABLE
from headrace.coordinators.groups.limits import ConsumerLimits

TOPICS = ("apples", "pears", "plums")
ROUNDS_TO_CALM = 5
names = st.sampled_from(TOPICS)


class GroupMachine(RuleBasedStateMachine):
    """Clients join, stay, are slow to give up, crash and leave; topics and time go on."""

    @initialize(
        interval_ms=st.sampled_from([0, 1_000]), assignor=st.sampled_from(["uniform", "range"])
    )
    def begin(self, interval_ms: int, assignor: str) -> None:
        limits = ConsumerLimits(assignors=(assignor,), assignment_interval_ms=interval_ms)
        self.assignor = assignor
        self.bench = Bench(Topics(apples=4), limits)
        self.clients: list[Client] = []
        self.away: list[Client] = []
        self.made = 0
        self.epochs = (0, 0)

    def _pick(self, index: int) -> Client:
        return self.clients[index % len(self.clients)]

    @rule(subscribed=st.sets(names, min_size=1), is_static=st.booleans())
    def join(self, subscribed: set[str], is_static: bool) -> None:
        if len(self.clients) < 6:
            self.made += 1
            client = Client(self.bench, f"member-{self.made}", subscribed)
            client.instance_id = f"instance-{self.made}" if is_static else None
            client.heartbeat()
            self.clients.append(client)

    @precondition(lambda self: self.clients)
    @rule(index=st.integers(0, 5))
    def heartbeat(self, index: int) -> None:
        self._pick(index).heartbeat()

    @precondition(lambda self: self.clients)
    @rule(index=st.integers(0, 5))
    def give_up_and_take(self, index: int) -> None:
        self._pick(index).reconcile()

    @precondition(lambda self: self.clients)
    @rule(index=st.integers(0, 5), subscribed=st.sets(names, min_size=1))
    def subscribe_anew(self, index: int, subscribed: set[str]) -> None:
        client = self._pick(index)
        client.names = tuple(subscribed)
        if client.member_id in self.bench.group._state.members and client.epoch > 0:
            reply = self.bench.heartbeat(
                client.member_id,
                self.bench.group._state.current[client.member_id].member_epoch,
                instance_id=client.instance_id,
                topic_names=subscribed,
            )
            client.epoch = reply.member_epoch
            client.assigned = reply.assignment if reply.assignment is not None else client.assigned

    @precondition(lambda self: self.clients)
    @rule(index=st.integers(0, 5), crashes=st.booleans())
    def go(self, index: int, crashes: bool) -> None:
        client = self._pick(index)
        if not crashes and client.member_id in self.bench.group._state.members:
            client.leave()
        self.clients.remove(client)

    @precondition(lambda self: any(client.instance_id for client in self.clients))
    @rule(returns_late=st.booleans())
    def static_member_restarts(self, returns_late: bool) -> None:
        client = next(client for client in self.clients if client.instance_id)
        if client.member_id not in self.bench.group._state.members:
            return
        client.leave(-2)
        if returns_late:
            self._wait(50_000)
        self.made += 1
        again = Client(self.bench, f"member-{self.made}", client.names)
        again.instance_id = client.instance_id
        self.clients[self.clients.index(client)] = again
        again.heartbeat()

    @rule(name=names, count=st.integers(1, 9))
    def change_topic(self, name: str, count: int) -> None:
        shape = self.bench.topics.shape(name)
        if shape is None:
            self.bench.topics.create(name, count)
        elif count > shape.partition_count:
            self.bench.topics.grow(name, count)
        else:
            self.bench.topics.delete(name)

    @rule(passed_ms=st.sampled_from([500, 5_000, 20_000, 50_000]))
    def time_passes(self, passed_ms: int) -> None:
        self._wait(passed_ms)

    @rule(fails=st.booleans())
    def one_write_fails(self, fails: bool) -> None:
        """A step whose records are lost has changed nothing that lasts."""
        if self.clients and fails:
            before = durable(self.bench.group)
            client = self.clients[0]
            current = self.bench.group._state.current.get(client.member_id)
            if current is None or current.member_epoch <= 0:
                return
            self.bench.writes_fail = True
            self.bench.heartbeat(
                client.member_id,
                current.member_epoch,
                instance_id=client.instance_id,
                topic_names=TOPICS,
                owned={},
            )
            self.bench.writes_fail = False
            assert durable(self.bench.group) == before

    def _wait(self, passed_ms: int) -> None:
        self.bench.now_ms += passed_ms
        self.bench.tick()

    @rule()
    def calm_brings_balance(self) -> None:
        # Those who crashed have to be fenced first: that takes a session's time.
        alive = {client.member_id for client in self.clients}
        if set(self.bench.group._state.members) != alive:
            self._go_on(rounds=10)
        self._go_on(rounds=ROUNDS_TO_CALM)
        for client in self.clients:
            client.reconcile()
        state = self.bench.group._state
        assert set(state.members) == {client.member_id for client in self.clients}
        for client in self.clients:
            current = state.current[client.member_id]
            assert (current.state, current.member_epoch) == (STABLE, state.epoch)
            assert client.epoch == state.epoch
            assert client.owned == {t: set(found) for t, found in current.assigned.items()}
            assert current.assigned == state.target[client.member_id]
        self._check_complete()
        assert self.bench.group.state == ("Stable" if self.clients else self.bench.group.state)

    def _go_on(self, rounds: int) -> None:
        for _ in range(rounds):
            for client in self.clients:
                client.reconcile()
                client.heartbeat()
            self._wait(5_000)

    def _check_complete(self) -> None:
        owners = Counter(
            (topic, partition)
            for client in self.clients
            for topic, found in client.owned.items()
            for partition in found
        )
        expected: Counter[tuple[UUID, int]] = Counter()
        for name in {name for client in self.clients for name in client.names}:
            shape = self.bench.topics.shape(name)
            if shape is not None:
                expected.update((shape.topic_id, p) for p in range(shape.partition_count))
        assert owners == expected
        if self.assignor == "uniform" and len({frozenset(c.names) for c in self.clients}) == 1:
            loads = [sum(map(len, client.owned.values())) for client in self.clients]
            assert max(loads) - min(loads) <= 1

    @invariant()
    def no_partition_has_two_owners(self) -> None:
        state = self.bench.group._state
        held: Counter[tuple[UUID, int]] = Counter()
        for current in state.current.values():
            for part in (current.assigned, current.pending_revocation):
                held.update((topic, p) for topic, found in part.items() for p in found)
        assert all(count == 1 for count in held.values())
        assert set(held) == set(state.owners)
        owned = Counter(
            (topic, partition)
            for client in self.clients
            if client.member_id in state.members and client.epoch > 0
            for topic, found in client.owned.items()
            for partition in found
        )
        assert all(count == 1 for count in owned.values())

    @invariant()
    def epochs_never_go_back(self) -> None:
        epochs = (self.bench.group.epoch, self.bench.group._state.assignment_epoch)
        assert epochs[0] >= self.epochs[0]
        assert epochs[1] >= self.epochs[1]
        assert epochs[1] <= epochs[0]
        self.epochs = epochs

    @invariant()
    def the_log_tells_the_whole_state(self) -> None:
        assert durable(self.bench.replayed()) == durable(self.bench.group)


GroupMachine.TestCase.settings = settings(
    max_examples=60,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
TestGroupMachine = GroupMachine.TestCase
