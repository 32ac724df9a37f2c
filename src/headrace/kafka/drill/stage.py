"""What a scenario works with: the cluster, the load on it, who watches, and patience.

Every wait looks for Ctrl-C and says how things stand; none is without a limit.
"""

import threading
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

from headrace.client.admin import Admin
from headrace.client.cluster_questions import Replica, reorder_replicas, what_is_missing
from headrace.client.errors import BusError
from headrace.client.librdkafka import Partition
from headrace.client.wire import WireConnection
from headrace.kafka.cluster import Cluster
from headrace.kafka.drill.acks import longest_wait
from headrace.kafka.drill.election import Timeouts
from headrace.kafka.drill.load import Load
from headrace.kafka.drill.machine import CALM_WAIT_S
from headrace.kafka.drill.observer import Observer
from headrace.kafka.drill.plan import MIN_INSYNC_REPLICAS, REPLICATION_FACTOR, Plan
from headrace.kafka.drill.timeline import EventKind, Timeline
from headrace.kafka.errors import DrillError
from headrace.kafka.layout import BROKER
from headrace.kafka.node import RUNNING, Node
from headrace.patience import Patience

_TICK_S = 0.05
_PLACED_TIMEOUT_S = 15.0
_NODE_TIMEOUT_S = 120.0
_ADMIN_TIMEOUT_S = 30.0
_ASK_EVERY_S = 0.2
_LOOK_EVERY_S = 0.5
_CALM_TIMEOUT_S = 10.0


class Status(NamedTuple):
    """How a drill stands. `done` of `total` is for what can be counted; 0 of 0 is nothing."""

    at_s: float
    title: str
    phase: str
    sent: int
    acknowledged: int
    failed: int
    silent_s: float  # since some publisher has heard nothing
    done: int = 0
    total: int = 0


def admin_of(cluster: Cluster) -> Admin:
    """For topics, groups and settings."""
    return Admin(cluster.bus, timeout_s=_ADMIN_TIMEOUT_S, config={"client.id": "headrace-drill"})


def spread(
    partitions: Iterable[Replica], *, avoid: int | None = None
) -> dict[Partition, tuple[int, ...]]:
    """Give every replica its share of leaders; `avoid` leads only what nobody else can.

    The order of a partition's replicas is changed, which moves no data.
    """
    orders = dict[Partition, tuple[int, ...]]()
    for each in partitions:
        able = sorted({*each.replicas} - {avoid}) or sorted(each.replicas)
        leader = able[each.partition % len(able)]
        others = [node for node in each.replicas if node != leader]
        orders[each.topic, each.partition] = (leader, *others)
    return orders


class Stage:
    """Belongs to the thread that runs the drill."""

    def __init__(
        self,
        cluster: Cluster,
        plan: Plan,
        timeouts: Timeouts,
        *,
        topic: str,
        timeline: Timeline,
        observer: Observer,
        load: Load,
        is_interrupted: Callable[[], bool],
        on_status: Callable[[Status], None],
    ) -> None:
        self.cluster, self.plan, self.timeouts = cluster, plan, timeouts
        self.topic = topic
        self.timeline, self.observer, self.load = timeline, observer, load
        self.title = self.phase = ""
        self.undisturbed_s = 0.0  # the longest wait before the fault
        self._is_interrupted, self._on_status = is_interrupted, on_status
        self._looked_at_s = -_LOOK_EVERY_S

    def tick(self, done: int = 0, total: int = 0) -> None:
        """Say how things stand; KeyboardInterrupt when the drill is to end.

        ClusterError when the cluster was removed: no patience brings it back.
        """
        if self._is_interrupted():
            raise KeyboardInterrupt
        load, now_s = self.load, self.timeline.now_s()
        if now_s - self._looked_at_s >= _LOOK_EVERY_S:
            self._looked_at_s = now_s
            self.cluster.check_is_there()
        last = [each.last_at_s for each in load.series if each.last_at_s is not None]
        silent_s = max(0.0, now_s - min(last)) if last else 0.0
        self._on_status(
            Status(
                now_s, self.title, self.phase, load.sent, load.acknowledged, load.failed,
                silent_s, done, total,
            )
        )  # fmt: skip

    def sleep(self, seconds: float) -> None:
        """Let the load run on."""
        patience = self._patience(seconds, _TICK_S)
        while patience.pause():
            pass

    def wait_until(
        self,
        condition: Callable[[], bool],
        timeout_s: float,
        what: Callable[[], str],
        *,
        every_s: float = _TICK_S,
    ) -> None:
        """Wait for a condition; DrillError saying `what` did not happen in time."""
        if not self._patience(timeout_s, every_s).until(condition):
            raise DrillError(f"{self.title}: {what()} within {timeout_s:.0f} s")

    def _patience(self, timeout_s: float, every_s: float) -> Patience:
        return Patience(
            timeout_s, meanwhile=self.tick, first_pause_s=every_s, longest_pause_s=every_s
        )

    def run_aside(self, work: Callable[[], None]) -> None:
        """Do something that blocks, and go on looking for Ctrl-C meanwhile."""
        failures = list[BaseException]()

        def run() -> None:
            try:
                work()
            except BaseException as error:
                failures.append(error)

        thread = threading.Thread(target=run, name="drill-aside", daemon=True)
        thread.start()
        while thread.is_alive():
            self.tick()
            thread.join(_TICK_S)
        if failures:
            raise failures[0]

    def await_whole(self) -> None:
        """Wait until all nodes run and every ISR is full, as every broker sees it."""
        self.phase = "until the cluster is whole"
        missing = "nothing was asked yet"

        def is_whole() -> bool:
            nonlocal missing
            absent = [node.id for node in self.cluster.nodes if node.state != RUNNING]
            if absent:
                missing = f"node {absent[0]} does not run"
            else:
                missing = what_is_missing(self.cluster.broker_addresses, is_whole=True)
            return not missing

        self.wait_until(
            is_whole,
            self.plan.whole_timeout_s,
            lambda: f"the cluster was not whole again ({missing})",
            every_s=_ASK_EVERY_S,
        )
        self.observer.take_all_back()

    def calm(self) -> None:
        """Let the load run until waits are short again: what follows is the fault's doing."""
        self.phase = "undisturbed"
        deadline = time.monotonic() + _CALM_TIMEOUT_S
        while True:
            start_s = self.timeline.now_s()
            self.sleep(self.plan.calm_s)
            self.await_settled()
            wait = longest_wait(self.load.series, start_s, self.timeline.now_s())
            if wait.seconds <= CALM_WAIT_S or time.monotonic() >= deadline:
                break
        if wait.seconds > CALM_WAIT_S:
            text = f"a busy machine: waits of {wait.seconds:.1f} s without any fault"
            self.timeline.add(EventKind.NOTE, text)
        self.undisturbed_s = wait.seconds

    def await_settled(self) -> None:
        """Wait until all that was sent so far is answered for: each wait in its own scenario."""
        self.wait_until(
            self.load.settled_mark(),
            self.plan.whole_timeout_s,
            lambda: "publishers got no acknowledgements",
        )

    def create_topic(self, topic: str) -> None:
        """Make a replicated topic. Only while the cluster is whole."""
        configs = {"min.insync.replicas": str(MIN_INSYNC_REPLICAS)}
        try:
            admin_of(self.cluster).create_topic(
                topic, self.plan.partitions, REPLICATION_FACTOR, configs
            )
        except BusError as error:
            raise DrillError(f"cannot create topic {topic}: {error}") from error

    def place_leaders(self, *, avoid: int | None = None) -> bool:
        """Spread the leaders of the drill's topic; whether `avoid` leads none of it now."""
        self.phase = "placing leaders"
        wanted = spread(self.observer.partitions(self.topic), avoid=avoid)

        def is_placed() -> bool:
            view = self.observer.view
            return all(view[key].leader == order[0] for key, order in wanted.items() if key in view)

        try:
            address = next(iter(self.observer.here().values()))
            with WireConnection(address, timeout_s=_PLACED_TIMEOUT_S) as connection:
                reorder_replicas(connection, wanted)
            self.wait_until(is_placed, _PLACED_TIMEOUT_S, lambda: "leaders did not move")
        except (BusError, DrillError) as error:
            self.timeline.add(EventKind.NOTE, f"leaders stay where they are: {error}")
        return avoid is None or self.leads(avoid) == 0

    def leads(self, node: int) -> int:
        """How many of the drill's partitions a node leads."""
        return sum(each.leader == node for each in self.observer.partitions(self.topic))

    def broker_to_hurt(self) -> Node:
        """The broker that leads most of the drill's partitions, not the controller if possible."""
        return max(
            self.cluster.brokers,
            key=lambda node: (node.id != self.observer.controller, self.leads(node.id), -node.id),
        )

    def follower_to_hurt(self) -> Node:
        """A broker with replicas of the drill's topic, not the controller if possible."""
        holders = {node for each in self.observer.partitions(self.topic) for node in each.replicas}
        return max(
            (node for node in self.cluster.brokers if node.id in holders),
            key=lambda node: (node.id != self.observer.controller, node.id),
        )

    def await_out(self, node: Node) -> None:
        """Wait until the cluster goes on without the node."""
        self.phase = f"until others take over from node {node.id}"
        timeouts = self.timeouts
        longest_s = timeouts.broker_election_s + timeouts.controller_election_s
        if BROKER in node.roles:
            self.wait_until(
                lambda: self.observer.is_out(node.id),
                longest_s + _NODE_TIMEOUT_S,
                lambda: f"others did not take over from node {node.id}",
            )

    def bring_back(self, node: Node) -> float:
        """Start a node again; return how long its process took to say that it started."""
        self.phase = f"node {node.id} starts"
        self.timeline.add(EventKind.NODE, f"node {node.id} starts", node=node.id)
        started = time.monotonic()
        node.launch()
        self.run_aside(lambda: node.await_started(_NODE_TIMEOUT_S))
        seconds = time.monotonic() - started
        self.timeline.add(EventKind.NODE, f"node {node.id} started ({seconds:.1f} s)", node=node.id)
        return seconds


def restore(cluster: Cluster) -> None:
    """Let every node run again, as when the drill found them; ClusterError if it was removed."""
    cluster.check_is_there()
    absent = list[Node]()
    for node in cluster.nodes:
        if node.state == "paused":
            node.resume()
        elif node.state == "stopped":
            node.launch()
            absent.append(node)
    for node in absent:
        node.await_started(_NODE_TIMEOUT_S)
