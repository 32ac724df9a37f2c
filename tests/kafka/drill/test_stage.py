"""Waiting, choosing whom to hurt and bringing nodes back, on a cluster that is only played."""

from collections import Counter
from collections.abc import Callable
from typing import Any, cast

import pytest

from headrace.client.cluster_questions import Replica
from headrace.kafka.cluster import Cluster
from headrace.kafka.drill.acks import AckSeries
from headrace.kafka.drill.election import Timeouts
from headrace.kafka.drill.load import Load
from headrace.kafka.drill.observer import Observer
from headrace.kafka.drill.plan import Plan
from headrace.kafka.drill.scenarios import kill_controller, kill_follower, kill_leader, restart_all
from headrace.kafka.drill.stage import Stage, Status, restore, spread
from headrace.kafka.drill.timeline import EventKind, Timeline
from headrace.kafka.errors import ClusterError, DrillError

TOPIC = "drill"
ALL = (1, 2, 3)


class PlayedNode:
    """A node that obeys at once and writes down what it was told."""

    def __init__(self, number: int, roles: tuple[str, ...], told: list[str]) -> None:
        self.id, self.roles, self.port = number, frozenset(roles), 9000 + number
        self.state = "running"
        self._told = told

    def kill(self) -> None:
        self._become("stopped", "kill")

    def stop(self) -> None:
        self._become("stopped", "stop")

    def pause(self) -> None:
        self._become("paused", "pause")

    def resume(self) -> None:
        self._become("running", "resume")

    def launch(self) -> None:
        self._become("running", "launch")

    def await_started(self, timeout_s: float) -> None:
        pass

    def _become(self, state: str, word: str) -> None:
        self.state = state
        self._told.append(f"{word} {self.id}")


class PlayedCluster:
    def __init__(self, controllers: int = 0) -> None:
        self.is_there = True
        self.told = list[str]()
        combined = ("broker",) if controllers else ("broker", "controller")
        self.brokers = tuple(PlayedNode(number, combined, self.told) for number in ALL)
        others = range(4, 4 + controllers)
        alone = tuple(PlayedNode(number, ("controller",), self.told) for number in others)
        self.nodes = (*self.brokers, *alone)

    def check_is_there(self) -> None:
        if not self.is_there:
            raise ClusterError("it was removed")

    def node(self, number: int) -> PlayedNode:
        return self.nodes[number - 1]


class PlayedLoad:
    sent = acknowledged = failed = 0

    def __init__(self) -> None:
        self.series = [AckSeries()]

    def settled_mark(self) -> Callable[[], bool]:
        return lambda: True


class PlayedStage(Stage):
    """A stage whose observer sees at once what the drill does."""

    def __init__(
        self, cluster: PlayedCluster, controller: int, *, can_place: bool = True, **more: Any
    ) -> None:
        timeline = Timeline()
        self.statuses = list[Status]()
        super().__init__(
            cast("Cluster", cluster),
            Plan(calm_s=0, hold_s=0),
            Timeouts(9.0, 2.0, 1.0, 1.0),
            topic=TOPIC,
            timeline=timeline,
            observer=Observer({node.id: ("", 0) for node in cluster.brokers}, timeline),
            load=cast("Load", PlayedLoad()),
            is_interrupted=more.get("is_interrupted", lambda: False),
            on_status=self.statuses.append,
        )
        self._can_place = can_place
        self.observer.controller = controller
        self.observer.view = {
            (TOPIC, number): Replica(TOPIC, number, leader, ALL, ALL, {})
            for number, leader in enumerate((1, 2, 2, 3, 3, 3))
        }

    def place_leaders(self, *, avoid: int | None = None) -> bool:
        if avoid is not None and self._can_place:
            (other, *_) = [number for number in ALL if number != avoid]
            for key, each in self.observer.view.items():
                if each.leader == avoid:
                    self.observer.view[key] = each._replace(leader=other)
        return avoid is None or self.leads(avoid) == 0

    def await_out(self, node: Any) -> None:
        if self.observer.controller == node.id:
            self.observer.controller = node.id % 3 + 1

    def await_whole(self) -> None:
        pass


def texts(stage: Stage, kind: EventKind) -> list[str]:
    return [event.text for event in stage.timeline.between(0, 1e9) if event.kind is kind]


def test_the_leader_that_is_killed_leads_most_and_is_started_again() -> None:
    cluster = PlayedCluster()
    stage = PlayedStage(cluster, controller=1)

    outcome = kill_leader(stage)

    assert cluster.told == ["kill 3", "launch 3"]
    assert texts(stage, EventKind.FAULT) == ["node 3 killed: leads 3 of 6 partitions"]
    assert (outcome.has_broker_out, outcome.has_controller_out) == (True, False)


def test_the_leader_that_is_killed_is_not_the_controller() -> None:
    cluster = PlayedCluster()

    kill_leader(PlayedStage(cluster, controller=3))

    assert cluster.told == ["kill 2", "launch 2"]


def test_the_follower_that_is_killed_leads_nothing() -> None:
    stage = PlayedStage(PlayedCluster(), controller=1)

    kill_follower(stage)

    assert texts(stage, EventKind.FAULT) == ["node 3 killed: leads 0 of 6 partitions"]


def test_a_controller_that_is_a_broker_leads_nothing_when_it_is_killed() -> None:
    stage = PlayedStage(PlayedCluster(), controller=2)

    outcome = kill_controller(stage)

    fault = "node 2 killed: leads 0 of 6 partitions, active controller"
    assert texts(stage, EventKind.FAULT) == [fault]
    assert (outcome.has_broker_out, outcome.has_controller_out) == (True, True)


def test_a_controller_whose_leaders_cannot_be_moved_is_told() -> None:
    stage = PlayedStage(PlayedCluster(), controller=2, can_place=False)

    kill_controller(stage)

    assert texts(stage, EventKind.NOTE) == ["node 2 also leads partitions"]


def test_a_controller_on_its_own_grants_no_broker_session() -> None:
    stage = PlayedStage(PlayedCluster(controllers=3), controller=5)

    outcome = kill_controller(stage)

    assert outcome.nodes == (5,)
    assert (outcome.has_broker_out, outcome.has_controller_out) == (False, True)


def test_a_rolling_restart_takes_every_node_once_and_the_controller_last() -> None:
    cluster = PlayedCluster()
    stage = PlayedStage(cluster, controller=2)

    outcome = restart_all(stage)

    assert outcome.nodes == (1, 3, 2)
    assert cluster.told == ["stop 1", "launch 1", "stop 3", "launch 3", "stop 2", "launch 2"]


def test_nodes_are_brought_back_as_they_were() -> None:
    cluster = PlayedCluster()
    cluster.node(1).state, cluster.node(3).state = "paused", "stopped"

    restore(cast("Cluster", cluster))

    assert cluster.told == ["resume 1", "launch 3"]


def test_nothing_is_brought_back_of_a_cluster_that_was_removed() -> None:
    cluster = PlayedCluster()
    cluster.node(1).state, cluster.is_there = "stopped", False

    with pytest.raises(ClusterError, match="it was removed"):
        restore(cast("Cluster", cluster))

    assert cluster.told == []


def test_no_wait_goes_on_for_a_cluster_that_was_removed() -> None:
    cluster = PlayedCluster()
    stage = PlayedStage(cluster, controller=1)
    cluster.is_there = False

    with pytest.raises(ClusterError, match="it was removed"):
        stage.wait_until(lambda: False, 60, lambda: "")


def test_what_does_not_happen_in_time_is_said() -> None:
    stage = PlayedStage(PlayedCluster(), controller=1)
    stage.title = "leader killed"

    with pytest.raises(DrillError, match="leader killed: nobody took over within 0 s"):
        stage.wait_until(lambda: False, 0, lambda: "nobody took over")


def test_an_interruption_ends_every_wait() -> None:
    stage = PlayedStage(PlayedCluster(), controller=1, is_interrupted=lambda: True)

    with pytest.raises(KeyboardInterrupt):
        stage.wait_until(lambda: False, 60, lambda: "")
    with pytest.raises(KeyboardInterrupt):
        stage.sleep(60)


def test_what_fails_aside_fails_here() -> None:
    def fail() -> None:
        raise DrillError("no")

    with pytest.raises(DrillError, match="no"):
        PlayedStage(PlayedCluster(), controller=1).run_aside(fail)


def test_a_busy_machine_is_noted_and_its_wait_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.kafka.drill.stage._CALM_TIMEOUT_S", 0.0)
    stage = PlayedStage(PlayedCluster(), controller=1)
    stage.load.series[0].add(stage.timeline.now_s(), 1.5)

    stage.calm()

    assert texts(stage, EventKind.NOTE) == ["a busy machine: waits of 1.5 s without any fault"]
    assert stage.undisturbed_s == 1.5


def partitions(count: int, replicas: tuple[int, ...] = (2, 3, 1)) -> list[Replica]:
    return [Replica("drill", number, 1, replicas, replicas, {}) for number in range(count)]


def test_leaders_are_spread_evenly() -> None:
    orders = spread(partitions(6))

    assert Counter(order[0] for order in orders.values()) == {1: 2, 2: 2, 3: 2}


def test_a_node_to_avoid_leads_nothing() -> None:
    orders = spread(partitions(6), avoid=2)

    assert Counter(order[0] for order in orders.values()) == {1: 3, 3: 3}


def test_no_replica_moves() -> None:
    for order in spread(partitions(6), avoid=3).values():
        assert sorted(order) == [1, 2, 3]


def test_a_node_that_alone_has_a_replica_leads_it_all_the_same() -> None:
    orders = spread(partitions(1, (2,)), avoid=2)

    assert orders == {("drill", 0): (2,)}
