"""A real drill on three real nodes, with short time-outs."""

import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from headrace.kafka import layout as layouts
from headrace.kafka.cluster import Cluster, running_cluster
from headrace.kafka.drill.plan import Plan, Scenario
from headrace.kafka.drill.run import check_cluster, run_drill
from headrace.kafka.drill.timeline import Event, EventKind
from headrace.kafka.errors import ClusterError, DrillError

TUNED = {
    "broker.session.timeout.ms": "2000",
    "broker.heartbeat.interval.ms": "250",
    "controller.quorum.election.timeout.ms": "500",
    "controller.quorum.fetch.timeout.ms": "1000",
}
PLAN = Plan(rate=300, partitions=3, resync_messages=20_000, calm_s=0.5, hold_s=0.5)


def test_a_cluster_of_two_brokers_is_refused(tmp_path: Path) -> None:
    cluster = Cluster.create(tmp_path / "small", "small", brokers=2)

    with pytest.raises(DrillError, match="has 2 brokers; a drill needs 3"):
        check_cluster(cluster)


@pytest.mark.slow
@pytest.mark.java
@pytest.mark.timeout(1800)
def test_a_real_cluster_keeps_its_promises_through_every_scenario(tmp_path: Path) -> None:
    with running_cluster(tmp_path / "cluster", settings=TUNED) as cluster:
        report = run_drill(cluster, PLAN)

        assert [each.scenario for each in report.scenarios] == list(Scenario)
        # How long publishers waited says more about the machine; the rest must hold on any.
        broken = [each for each in report.checks if each.name != "wait" and not each.is_kept]
        assert broken == []
        assert all(each.others_cpu_share is not None for each in report.scenarios)
        assert report.balance.acknowledged == report.balance.stored
        assert report.balance.acknowledged > PLAN.resync_messages
        assert all(each.longest_wait.seconds > 0 for each in report.scenarios)
        resync = report.scenarios[-1].resync
        assert resync is not None
        assert resync.back_s > 0
        assert_as_found(cluster)
        assert_interruption_brings_nodes_back(cluster)
        assert_nothing_is_started_of_a_removed_cluster(cluster)


def assert_as_found(cluster: Cluster) -> None:
    """All nodes run, every ISR is full, and the drill's topics are gone."""
    check_cluster(cluster)
    topics = {each.topic for each in cluster.replicas()}
    assert not [topic for topic in topics if topic.startswith("headrace-drill")]


def assert_interruption_brings_nodes_back(cluster: Cluster) -> None:
    """A drill that is interrupted while a node is dead starts it again before it ends."""
    command = ["-m", "headrace", "kafka", "drill", "--dir", cluster.directory]
    with subprocess.Popen(
        [sys.executable, *map(str, command), "--scenario", "leader"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        while all(node.state == "running" for node in cluster.nodes):
            assert process.poll() is None
            time.sleep(0.05)
        with pytest.raises(ClusterError, match="another command is at work on cluster"):
            Cluster.open(cluster.directory).destroy()
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate()

    assert process.returncode == 130
    assert stderr == (
        "headrace: ending: the nodes are brought back; Ctrl-C again leaves them as they are\n"
        "headrace: interrupted: the nodes run again, nothing is proven\n"
    )
    assert stdout == ""
    assert all(node.state == "running" for node in cluster.nodes)


def assert_nothing_is_started_of_a_removed_cluster(cluster: Cluster) -> None:
    """A cluster that goes while one of its nodes is dead ends the drill; the node stays dead."""
    layout = cluster.directory / layouts.FILE_NAME
    aside = layout.with_suffix(".aside")

    def remove(event: Event) -> None:
        if event.kind is EventKind.FAULT:
            layout.rename(aside)

    with pytest.raises(ClusterError, match=r"cluster default in .* was removed"):
        run_drill(cluster, replace(PLAN, scenarios=(Scenario.LEADER,)), on_event=remove)

    assert [node.state for node in cluster.nodes].count("stopped") == 1
    aside.rename(layout)
