"""`headrace kafka drill`: what it refuses, prints and writes; a real one is elsewhere."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.cli.conftest import Answer
from tests.kafka.drill.sample import GOOD, drill_report, scenario_report
from typer.testing import CliRunner

from headrace.cli.app import app
from headrace.kafka.cluster import Cluster
from headrace.kafka.drill import plot, run
from headrace.kafka.drill.plan import Plan, Scenario
from headrace.kafka.drill.report import DrillReport, Resync

Drill = Callable[..., Answer]
RESYNC = Resync(
    node=2, messages=1_000_000, missed_bytes=100_000_000, write_s=20, jvm_start_s=4, catch_up_s=1
)


@pytest.fixture
def drill(tmp_path: Path) -> Drill:
    """Run the command where clusters are in a directory of their own."""

    def invoke(*words: object) -> Answer:
        environment = {"HEADRACE_KAFKA_DIR": str(tmp_path / "clusters"), "NO_COLOR": "1"}
        result = CliRunner().invoke(app, ["kafka", "drill", *map(str, words)], env=environment)
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Answer(result.exit_code, result.stdout, result.stderr)

    return invoke


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    """A cluster that is laid out and does not run."""
    return Cluster.create(tmp_path / "clusters" / "default")


def give(monkeypatch: pytest.MonkeyPatch, report: DrillReport | BaseException) -> list[Plan]:
    """Let every drill end this way; return the plans that were asked for."""
    plans = list[Plan]()

    def run_drill(cluster: Cluster, plan: Plan, *, on_scenario: Callable[..., None], **_: object):  # type: ignore[no-untyped-def]
        plans.append(plan)
        if isinstance(report, BaseException):
            raise report
        for each in report.scenarios:
            on_scenario(each)
        return report

    monkeypatch.setattr(run, "run_drill", run_drill)
    return plans


def test_a_cluster_that_is_not_there_is_refused_with_the_fix(drill: Drill) -> None:
    answer = drill("--name", "nowhere")

    assert answer.code == 1
    assert "headrace kafka up --name nowhere" in answer.stderr


def test_a_cluster_that_does_not_run_is_refused_with_the_fix(
    drill: Drill, cluster: Cluster
) -> None:
    answer = drill()

    assert answer.code == 1
    assert answer.stderr == ("headrace: node 1 of cluster default is stopped; headrace kafka up\n")


def test_the_fix_names_a_cluster_by_its_directory_where_it_has_no_name(
    drill: Drill, tmp_path: Path
) -> None:
    Cluster.create(tmp_path / "a place")

    answer = drill("--dir", tmp_path / "a place")

    assert answer.stderr.endswith(f"is stopped; headrace kafka up --dir '{tmp_path}/a place'\n")


def test_a_cluster_that_is_too_small_is_refused_with_the_fix(drill: Drill, tmp_path: Path) -> None:
    Cluster.create(tmp_path / "small", "small", brokers=1)

    answer = drill("--dir", tmp_path / "small")

    assert answer.code == 1
    assert answer.stderr == (
        "headrace: cluster small has 1 broker; a drill needs 3: "
        "headrace kafka up --name NEW --brokers 3\n"
    )


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--message-bytes", 3), "--message-bytes 3: 16 is the least"),
        (("--message-bytes", 2_000_000), "--message-bytes 2000000: 1000000 is the most"),
        (("--json", "."), "cannot write .: Is a directory"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_hurt(
    drill: Drill, words: tuple[object, ...], sentence: str
) -> None:
    answer = drill(*words)

    assert answer.code == 2
    assert answer.stderr == f"headrace: {sentence}\n"


def test_a_plot_without_matplotlib_is_refused_at_once(
    drill: Drill, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plot, "can_plot", lambda: False)

    answer = drill("--plot", "drill.png")

    assert answer.code == 2
    assert "pip install '.[bench]'" in answer.stderr


def test_the_options_are_the_plan(
    drill: Drill, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans = give(monkeypatch, drill_report())

    drill(
        *("--scenario", "pause", "--scenario", "leader", "--rate", 500, "--message-bytes", 200),
        *("--publishers", 3, "--partitions", 9, "--resync-messages", 7, "--keep-topic"),
    )

    assert plans == [
        Plan(
            scenarios=(Scenario.PAUSE, Scenario.LEADER),
            rate=500,
            message_bytes=200,
            publishers=3,
            partitions=9,
            resync_messages=7,
            is_topic_kept=True,
        )
    ]


def test_without_scenarios_all_are_run(
    drill: Drill, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans = give(monkeypatch, drill_report())

    drill()

    assert plans[0].scenarios == tuple(Scenario)


def test_a_drill_prints_its_timeline_its_figures_and_its_verdict(
    drill: Drill, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = drill_report(scenario_report(), scenario_report(Scenario.RESYNC, resync=RESYNC))
    give(monkeypatch, report)

    answer = drill()

    assert answer.code == 0
    assert "leader killed (node 1)" in answer.lines
    assert "     +9.00 s  leader      node 2 leads partition 0 (was node 1)" in answer.lines
    assert any(line.split()[-7:-2] == ["s", "12.0", "s", "10%", "9.00"] for line in answer.lines)
    assert "lost:            0" in answer.lines
    assert any(
        "missed 1,000,000 messages (100.0 MB, written at 50,000/s) and was back in the ISR after "
        "5.0 s: JVM 4.0 s, catching up 1.0 s, 20.0 MB/s" in line
        for line in answer.lines
    )
    assert answer.lines[-1] == report.verdict


def test_a_loss_ends_the_command_with_1(
    drill: Drill, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    give(monkeypatch, drill_report(balance=replace(GOOD, lost=1)))

    answer = drill()

    assert answer.code == 1
    assert answer.lines[-1] == "FAIL: 1 lost"


def test_the_files_are_written_also_when_the_drill_failed(
    drill: Drill, cluster: Cluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("matplotlib")
    give(monkeypatch, drill_report(balance=replace(GOOD, lost=1)))

    drill("--output", tmp_path / "out", "--json", tmp_path / "other.json")

    for path in (tmp_path / "out" / "drill.json", tmp_path / "other.json"):
        assert json.loads(path.read_text("utf-8"))["verdict"] == "FAIL: 1 lost"
    assert (tmp_path / "out" / "drill.png").read_bytes().startswith(b"\x89PNG")


def test_a_drill_that_is_refused_leaves_no_files(drill: Drill, tmp_path: Path) -> None:
    drill("--json", tmp_path / "drill.json")

    assert not (tmp_path / "drill.json").exists()


def test_an_interrupted_drill_has_no_verdict(
    drill: Drill, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    give(monkeypatch, KeyboardInterrupt())

    answer = drill()

    assert answer.code >= 128
    assert answer.stderr == "headrace: interrupted: the nodes run again, nothing is proven\n"
    assert answer.stdout == ""
