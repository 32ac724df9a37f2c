"""Runs a drill: checks the cluster, puts load on it, plays the scenarios, balances the books.

Whatever happens, the nodes run afterwards as they did before, and the drill's topics are gone;
unless the cluster itself is gone, of which nothing is started again.
"""

import contextlib
import datetime
import uuid
from collections.abc import Callable, Iterator

from headrace.client.cluster_questions import what_is_missing
from headrace.client.errors import BusError
from headrace.file_lock import FileLock, LockedError
from headrace.kafka.cluster import Cluster
from headrace.kafka.cluster_names import option_for
from headrace.kafka.drill import acks
from headrace.kafka.drill.election import Timeouts, read_timeouts, wait_limit
from headrace.kafka.drill.ledger import EMPTY, Reading, balance, compare
from headrace.kafka.drill.load import Load
from headrace.kafka.drill.machine import CpuWatch, read_cpu
from headrace.kafka.drill.observer import Observer
from headrace.kafka.drill.plan import REPLICATION_FACTOR, TITLES, Plan, Scenario
from headrace.kafka.drill.readers import end_offsets, read_whole
from headrace.kafka.drill.report import ClusterFacts, DrillReport, ScenarioReport
from headrace.kafka.drill.scenarios import SCENARIOS, Bulk
from headrace.kafka.drill.stage import Stage, Status, admin_of, restore
from headrace.kafka.drill.timeline import Event, EventKind, Timeline
from headrace.kafka.drill.verdict import judge
from headrace.kafka.errors import DrillError
from headrace.kafka.layout import BROKER
from headrace.kafka.node import RUNNING
from headrace.kafka.node_process import LOCK_TIMEOUT_S

_LOCK_FILE = ".drill.lock"
_GIVE_UP_S = 5.0  # for what is on its way when a drill is broken off
_SILENCE_S = 60.0  # the longest that a whole cluster may keep a reader waiting
_WORTH_TELLING_S = 0.5


def run_drill(
    cluster: Cluster,
    plan: Plan,
    *,
    on_event: Callable[[Event], None] | None = None,
    on_status: Callable[[Status], None] = lambda _status: None,
    on_scenario: Callable[[ScenarioReport], None] = lambda _report: None,
    is_interrupted: Callable[[], bool] = lambda: False,
) -> DrillReport:
    """Run the plan on a cluster that runs.

    Raises DrillError when it cannot be run to its end, KeyboardInterrupt when `is_interrupted`
    says so; the nodes are brought back in both cases.
    """
    check_cluster(cluster)
    with cluster.in_use(), _only_one(cluster):
        timeouts = _timeouts_of(cluster)
        drill = _Drill(cluster, plan, timeouts, on_event, on_status, is_interrupted)
        return drill.run(on_scenario)


def check_cluster(cluster: Cluster) -> None:
    """DrillError with the fix unless the cluster can be drilled: large enough, all up, whole."""
    count = len(cluster.brokers)
    if count < REPLICATION_FACTOR:
        raise DrillError(
            f"cluster {cluster.name} has {count} broker{'s' if count > 1 else ''}; a drill needs "
            f"{REPLICATION_FACTOR}: headrace kafka up --name NEW --brokers {REPLICATION_FACTOR}"
        )
    for node in cluster.nodes:
        if (state := node.state) != RUNNING:
            fix = f"resume {node.id}" if state == "paused" else "up"
            raise DrillError(
                f"node {node.id} of cluster {cluster.name} is {state}; "
                f"headrace kafka {fix}{_option(cluster)}"
            )
    if missing := what_is_missing(cluster.broker_addresses, is_whole=True):
        raise DrillError(
            f"cluster {cluster.name} is not whole: {missing}; wait, or see what is wrong with "
            f"headrace kafka status{_option(cluster)}"
        )


def _timeouts_of(cluster: Cluster) -> Timeouts:
    node = cluster.brokers[0].id
    try:
        configs = admin_of(cluster).configs("broker", str(node))
    except BusError as error:
        raise DrillError(f"node {node} does not tell its settings: {error}") from error
    return read_timeouts({each.name: each.value for each in configs})


def _option(cluster: Cluster) -> str:
    return option_for(cluster.name, cluster.directory)


@contextlib.contextmanager
def _only_one(cluster: Cluster) -> Iterator[None]:
    # Beside a node's own files, so that it goes with them.
    try:
        lock = FileLock(cluster.nodes[0].directory / _LOCK_FILE, timeout_s=LOCK_TIMEOUT_S)
    except LockedError as error:
        raise DrillError(f"another drill runs on cluster {cluster.name}; wait for it") from error
    with lock:
        yield


class _Drill:
    """One run of a plan."""

    def __init__(
        self,
        cluster: Cluster,
        plan: Plan,
        timeouts: Timeouts,
        on_event: Callable[[Event], None] | None,
        on_status: Callable[[Status], None],
        is_interrupted: Callable[[], bool],
    ) -> None:
        self._cluster, self._plan, self._timeouts = cluster, plan, timeouts
        self._started_at = datetime.datetime.now(datetime.UTC)
        self._topic = self._group = f"headrace-drill-{uuid.uuid4().hex[:8]}"
        self._timeline = Timeline(on_event)
        self._observer = Observer(cluster.broker_addresses, self._timeline)
        self._cpu = CpuWatch(
            lambda: read_cpu(node.pid for node in cluster.nodes), self._timeline.now_s
        )
        self._bulks = list[Bulk]()
        self._observer.topics[self._topic] = "partition"
        self._load = Load(cluster.bus, self._topic, self._group, plan, timeouts, self._timeline)
        self._stage = Stage(
            cluster,
            plan,
            timeouts,
            topic=self._topic,
            timeline=self._timeline,
            observer=self._observer,
            load=self._load,
            is_interrupted=is_interrupted,
            on_status=on_status,
        )

    def run(self, on_scenario: Callable[[ScenarioReport], None]) -> DrillReport:
        stage = self._stage
        try:
            stage.title = "preparation"
            stage.create_topic(self._topic)
            self._observer.start()
            self._cpu.start()
            stage.await_whole()
            stage.wait_until(
                lambda: len(self._observer.view) == self._plan.partitions,
                self._plan.whole_timeout_s,
                lambda: f"topic {self._topic} did not appear",
            )
            stage.phase = "publishers and consumers begin"
            self._load.start()
            stage.wait_until(
                self._has_begun,
                self._plan.whole_timeout_s,
                lambda: "publishers and consumers did not begin",
            )
            scenarios = list[ScenarioReport]()
            for scenario in self._plan.scenarios:
                scenarios.append(self._play(scenario))
                on_scenario(scenarios[-1])
            self._load.finish(self._plan.whole_timeout_s)
            return self._report(tuple(scenarios))
        finally:
            self._clean_up()

    def _has_begun(self) -> bool:
        has_acks = all(publisher.acknowledged for publisher in self._load.publishers)
        return has_acks and self._load.consumers.reading.count > 0

    def _play(self, scenario: Scenario) -> ScenarioReport:
        stage, load, timeline = self._stage, self._load, self._timeline
        stage.title = title = TITLES[scenario]
        load.tell_next_failure()
        acknowledged, failed = load.acknowledged, load.failed
        start_s = timeline.add(EventKind.SCENARIO, title).at_s
        outcome = SCENARIOS[scenario](stage)
        if outcome.bulk is not None:
            self._bulks.append(outcome.bulk)
        stage.await_whole()
        timeline.add(EventKind.NODE, "cluster whole: every ISR is full")
        stage.phase = "until all is acknowledged"
        stage.await_settled()
        end_s = timeline.now_s()
        wait = acks.longest_wait(load.series, outcome.fault_s, end_s)
        gap = acks.longest_gap(load.series, outcome.fault_s, end_s)
        if gap.seconds >= _WORTH_TELLING_S:
            timeline.add(
                EventKind.ACKS,
                "a publisher's last acknowledgement before the gap",
                at_s=gap.start_s,
            )
            text = f"its first acknowledgement after the gap: {gap.seconds:.1f} s without"
            timeline.add(EventKind.ACKS, text, at_s=gap.end_s)
        limit = wait_limit(
            self._timeouts,
            has_broker_out=outcome.has_broker_out,
            has_controller_out=outcome.has_controller_out,
            undisturbed_s=stage.undisturbed_s,
        )
        others = self._cpu.others_share(wait.at_s - wait.seconds, wait.at_s + acks.SLOT_S)
        timeline.add(
            EventKind.ACKS,
            f"longest wait for an acknowledgement: {wait.seconds:.2f} s, allowed {limit}",
            at_s=max(start_s, min(wait.at_s + acks.SLOT_S, end_s - 0.001)),
        )
        return ScenarioReport(
            scenario=scenario,
            title=title,
            nodes=outcome.nodes,
            start_s=start_s,
            fault_s=outcome.fault_s,
            end_s=end_s,
            undisturbed_s=stage.undisturbed_s,
            others_cpu_share=others,
            longest_wait=wait,
            longest_gap=gap,
            limit=limit,
            acknowledged=load.acknowledged - acknowledged,
            failed=load.failed - failed,
            events=timeline.between(start_s, end_s),
            resync=outcome.resync,
        )

    def _report(self, scenarios: tuple[ScenarioReport, ...]) -> DrillReport:
        stage, load = self._stage, self._load
        stage.title, stage.phase = "balance", "consumers read to the end"
        ends = end_offsets(self._cluster.bus, self._topic, self._plan.partitions)
        load.consumers.drain(ends, _SILENCE_S, stage.tick)
        load.consumers.stop(_SILENCE_S)
        drill = Bulk(self._topic, load.streams, load.accounts)
        reading = self._read(drill)
        live = compare(load.consumers.reading, reading, read_again=load.consumers.read_again)
        found = EMPTY.plus(balance(load.accounts, reading))
        for bulk in self._bulks:
            found = found.plus(balance(bulk.accounts, self._read(bulk)))
        cluster = self._cluster
        return DrillReport(
            cluster=ClusterFacts(
                name=cluster.name,
                version=cluster.version,
                brokers=len(cluster.brokers),
                controllers=len(cluster.controllers),
                is_combined=any(BROKER in node.roles for node in cluster.controllers),
                timeouts=self._timeouts,
            ),
            plan=self._plan,
            topic=self._topic,
            started_at=self._started_at.isoformat(timespec="seconds"),
            seconds=self._timeline.now_s(),
            scenarios=scenarios,
            course=tuple(acks.by_second(load.series)),
            balance=found,
            live=live,
            checks=judge(found, live, scenarios, load.fatal_errors),
        )

    def _read(self, bulk: Bulk) -> Reading:
        self._stage.phase = f"reading {bulk.topic}"
        return read_whole(
            self._cluster.bus,
            self._timeouts,
            bulk.topic,
            bulk.streams,
            end_offsets(self._cluster.bus, bulk.topic, self._plan.partitions),
            timeout_s=_SILENCE_S,
            on_progress=self._stage.tick,
        )

    def _clean_up(self) -> None:
        """Nodes first, so that what is still on its way finds somebody."""
        try:
            restore(self._cluster)
        finally:
            self._load.finish(_GIVE_UP_S)
            self._load.consumers.stop(_GIVE_UP_S)
            self._observer.stop()
            self._cpu.stop()
            if not self._plan.is_topic_kept and self._cluster.is_there:
                admin = admin_of(self._cluster)
                with contextlib.suppress(BusError):
                    admin.delete_topics(self._observer.topics)
                    # A group without members goes by itself in a week; nobody needs to hear of it.
                    admin.delete_groups([self._group])
