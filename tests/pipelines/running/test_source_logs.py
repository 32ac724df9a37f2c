"""Which log is which: the decisions, without a bus and without Spark."""

import json
from collections.abc import Iterable
from pathlib import Path

import pytest
from tests.pipelines.running.stage import JsonFiles, a_pipeline

from headrace.pipelines.errors import PipelineDefinitionError, RunError
from headrace.pipelines.running.checkpoint import Checkpoint
from headrace.pipelines.running.source_logs import OtherLogError, SourceLogs, parse_on_other_log
from headrace.pipelines.spans import Log, Spans
from headrace.pipelines.topic_positions import BusIdentity, BusSilentError


class Bench:
    """A checkpoint and a bus that says what it is told to."""

    def __init__(self, directory: Path) -> None:
        self.place = directory / "checkpoint"
        self.checkpoint = Checkpoint(str(self.place))
        self.checkpoint.claim(a_pipeline("orders", JsonFiles(directory)))
        self.bus = BusIdentity("c1", {"orders": "x9"})
        self.told = list[str]()

    def ask(self, topics: Iterable[str]) -> BusIdentity:
        ids = {name: id_ for name, id_ in self.bus.topic_ids.items() if name in set(topics)}
        return BusIdentity(self.bus.cluster_id, ids)

    def logs(self, on_other: str = "fail") -> SourceLogs:
        logs = SourceLogs(self.checkpoint, "bus:1", self.ask)
        logs.start(["orders"], on_other, self.told.append)
        return logs

    def plan(self, number: int, start: int, end: int) -> None:
        """What Spark writes before a batch."""
        for name, offset in ((f"offsets/{number - 1}", start), (f"offsets/{number}", end)):
            path = self.place / (name if not name.endswith("-1") else "sources/0/0")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"v1\n{{}}\n{json.dumps({'orders': {'0': offset}})}")


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_a_batch_holds_what_lies_between_two_of_sparks_offsets(bench: Bench) -> None:
    bench.plan(1, 10, 25)

    batch = bench.logs().batch(1)

    assert batch.holds == Spans.of({Log("orders", 0, "x9"): (10, 25)})
    assert batch.before == Spans.of({Log("orders", 0, "x9"): (0, 10)})
    assert (batch.number, batch.cluster_id) == (1, "c1")


def test_the_first_batch_begins_at_sparks_first_offsets(bench: Bench) -> None:
    (bench.place / "sources/0").mkdir(parents=True)
    (bench.place / "sources/0/0").write_text('\0v1\n{"orders":{"0":7}}')
    (bench.place / "offsets").mkdir()
    (bench.place / "offsets/0").write_text('v1\n{}\n{"orders":{"0":9,"1":4}}')

    holds = bench.logs().batch(0).holds

    # Partition 1 came later, and is read from its beginning.
    assert holds == Spans.of({Log("orders", 0, "x9"): (7, 9), Log("orders", 1, "x9"): (0, 4)})


def test_a_batch_whose_beginning_is_lost_is_refused(bench: Bench) -> None:
    bench.plan(5, 10, 25)
    (bench.place / "offsets/4").unlink()

    with pytest.raises(RunError, match="where batch 5 begins: offsets/4 is missing"):
        bench.logs().batch(5)


def test_offsets_that_are_not_those_of_topics_leave_the_number(bench: Bench) -> None:
    (bench.place / "offsets").mkdir()
    (bench.place / "offsets/0").write_text('v1\n{}\n{"logOffset":3}')

    assert bench.logs().batch(0).holds is None


def test_an_id_that_is_not_known_is_not_compared(bench: Bench) -> None:
    bench.bus = BusIdentity("", {"orders": ""})
    bench.logs()
    bench.bus = BusIdentity("c1", {"orders": "x9"})
    bench.logs()
    bench.bus = BusIdentity("", {"orders": ""})

    bench.logs()

    assert bench.checkpoint.facts["topics"]["orders"]["id"] == "x9"


def test_a_topic_without_an_id_is_another_log_on_another_cluster(bench: Bench) -> None:
    bench.bus = BusIdentity("c1", {"orders": ""})
    bench.plan(1, 10, 25)
    before = bench.logs().batch(1).holds
    bench.bus = BusIdentity("c2", {"orders": ""})

    logs = bench.logs("anew")
    bench.plan(1, 10, 25)

    assert before is not None
    assert logs.batch(1).holds != before


def test_a_batch_of_a_topic_the_bus_does_not_know_is_asked_for_again(bench: Bench) -> None:
    bench.plan(1, 10, 25)
    logs = bench.logs()
    bench.bus = BusIdentity("c1", {})

    with pytest.raises(BusSilentError, match="knows no topic orders, of which batch 1 holds"):
        logs.batch(1)


def test_of_a_topic_that_is_gone_a_batch_may_hold_nothing(bench: Bench) -> None:
    bench.plan(1, 25, 25)
    logs = bench.logs()
    bench.bus = BusIdentity("c1", {})

    batch = logs.batch(1)

    assert batch.holds == Spans()
    assert batch.before == Spans.of({Log("orders", 0, "x9"): (0, 25)})


def test_a_plan_with_records_of_a_topic_that_is_gone_is_made_anew(bench: Bench) -> None:
    bench.plan(1, 10, 25)
    (bench.place / "offsets/.1.crc").write_bytes(b"crc")
    (bench.place / "commits").mkdir()
    (bench.place / "commits/0").write_text("v1\n{}")
    logs = bench.logs()
    logs.plan_without_gone(bench.told.append)
    assert bench.told == []
    bench.bus = BusIdentity("c1", {})

    logs.plan_without_gone(bench.told.append)

    assert sorted(path.name for path in (bench.place / "offsets").iterdir()) == ["0"]
    assert len(list(bench.place.glob("before-*/offsets/*1*"))) == 2
    assert "has no topic orders any more" in bench.told[0]


def test_a_plan_that_is_done_stays(bench: Bench) -> None:
    bench.plan(1, 10, 25)
    (bench.place / "commits").mkdir()
    (bench.place / "commits/1").write_text("v1\n{}")

    assert bench.checkpoint.planned_topics() == set()


def test_topics_that_stayed_go_on_where_they_were_when_others_begin_anew(bench: Bench) -> None:
    bench.bus = BusIdentity("c1", {"orders": "x9", "more": "m1"})
    logs = SourceLogs(bench.checkpoint, "bus:1", bench.ask)
    logs.start(["orders", "more"], "fail", bench.told.append)
    bench.plan(1, 10, 25)
    (bench.place / "commits").mkdir()
    (bench.place / "commits/1").write_text("v1\n{}")
    bench.bus = BusIdentity("c1", {"orders": "x9", "more": "m2"})

    bench.logs("anew")
    bench.logs("fail")

    assert bench.checkpoint.kept_offsets() == {"orders": {"0": 25}}


def test_commits_without_offsets_are_told_before_spark_starts(bench: Bench) -> None:
    bench.plan(1, 10, 25)
    (bench.place / "commits").mkdir()
    (bench.place / "commits/1").write_text("v1\n{}")
    (bench.place / "offsets/1").unlink()

    with pytest.raises(RunError, match="has commits/1 and no offsets/1; put back"):
        bench.checkpoint.next_offsets()


def test_a_topic_that_is_away_and_comes_back_as_another_is_found_out(bench: Bench) -> None:
    bench.logs()
    bench.bus = BusIdentity("c1", {})
    bench.logs()
    bench.bus = BusIdentity("c1", {"orders": "y7"})

    with pytest.raises(OtherLogError, match="its id was x9 and is y7"):
        bench.logs()


def test_a_log_that_moved_keeps_its_name_for_sinks(bench: Bench) -> None:
    bench.plan(1, 10, 25)
    before = bench.logs().batch(1)
    bench.bus = BusIdentity("c2", {"orders": "y7"})

    moved = bench.logs("same")

    # A batch that was written before the move is still known after it.
    assert moved.batch(1).holds == before.holds
    assert bench.logs().batch(1).cluster_id == "c2"
    assert "taken for the same log" in bench.told[0]


def test_what_is_read_anew_begins_without_sparks_files_and_under_a_new_name(bench: Bench) -> None:
    bench.plan(1, 10, 25)
    app_id = bench.checkpoint.facts["app_id"]
    bench.logs()
    bench.bus = BusIdentity("c1", {"orders": "y7"})

    bench.logs("anew")

    assert not bench.checkpoint.is_begun
    assert bench.checkpoint.facts["app_id"] == app_id
    assert bench.checkpoint.facts["topics"] == {"orders": {"id": "y7", "log": "y7"}}
    assert len(list(bench.place.glob("before-*/offsets/1"))) == 1


def test_a_note_that_is_damaged_is_told(bench: Bench) -> None:
    (bench.place / "headrace.json").write_text("{")

    with pytest.raises(RunError, match=r"headrace\.json cannot be read"):
        bench.logs()


def test_a_word_that_is_none_of_the_three_is_refused() -> None:
    with pytest.raises(PipelineDefinitionError, match="on-other-log maybe: write fail, same, anew"):
        parse_on_other_log("maybe")
