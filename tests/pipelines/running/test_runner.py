"""Runs on real local Spark and a real broker, all in one session."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.pipelines.running.stage import (
    PATIENCE_S,
    Gate,
    JsonFiles,
    Stage,
    a_pipeline,
    a_topic,
    committed,
    send,
    values_in,
)

from headrace.client.bus import Bus
from headrace.pipelines import TopicSource, Trigger, load_pipeline, run_pipeline
from headrace.pipelines.errors import PipelineError, RunError, SinkError, SourceError
from headrace.pipelines.running.run_state import (
    FAILED,
    FINISHED,
    RUNNING,
    STOPPED,
    STOPPING,
    WAITING,
    find_run,
)
from headrace.testing import running_broker

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


def test_a_run_writes_what_is_there_and_the_next_goes_on_where_it_ended(stage: Stage) -> None:
    topic = a_topic(stage.bus, range(1000))
    pipeline = a_pipeline(topic, stage.sink, max_rows=600)

    first = stage.run(pipeline)
    send(stage.bus, topic, range(1000, 1100))
    second = stage.run(pipeline)

    assert stage.sink.numbers() == list(range(1100))
    assert (first.state, first.progress.rows, first.progress.batches) == (FINISHED, 1000, 2)
    assert (second.progress.rows, second.progress.lag, second.progress.batch_id) == (100, 0, 2)
    assert len(set(stage.sink.opened)) == 1  # one app id for both
    assert committed(stage.bus, "r", topic) == {0: 550, 1: 550}
    status = find_run(stage.directory, "r")
    assert (status.state, status.is_alive) == (FINISHED, False)
    assert status.progress is not None
    assert status.progress["partitions"][0]["lag"] == 0


def test_a_pipeline_runs_by_name_from_python(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_STATE_DIR", str(stage.directory))
    source = TopicSource(topics=(a_topic(stage.bus, range(3)),), end="latest")
    archive = load_pipeline("archive", source=source, sinks=[f"parquet:{stage.directory}/lake"])

    report = run_pipeline(archive, stage.bus, spark=stage.spark)

    assert (report.is_stopped, report.progress.rows) == (False, 3)
    assert find_run(stage.directory, "archive").state == FINISHED


def test_bad_records_are_set_aside_and_two_sinks_get_the_same_good_ones(stage: Stage) -> None:
    topic = a_topic(stage.bus, [1, "two", 3, "four", 5])
    other = JsonFiles(stage.directory / "other")

    def doubled(rows: "DataFrame") -> "DataFrame":
        return rows.selectExpr("number * 2 as number")

    report = stage.run(
        a_pipeline(topic, stage.sink, other, transform=doubled), dead_letter_topic=f"{topic}.dead"
    )

    assert stage.sink.numbers() == other.numbers() == [2, 6, 10]
    assert (report.progress.rows, report.progress.dead_letters) == (5, 2)
    assert sorted(values_in(stage.bus, f"{topic}.dead")) == [b"four", b"two"]


def test_a_limit_in_a_transform_swallows_no_bad_record(stage: Stage) -> None:
    topic = a_topic(stage.bus, [*range(200), *(f"bad{n}" for n in range(5))], partitions=1)

    def first_ones(rows: "DataFrame") -> "DataFrame":
        return rows.limit(3)

    report = stage.run(
        a_pipeline(topic, stage.sink, transform=first_ones), dead_letter_topic=f"{topic}.dead"
    )

    assert len(stage.sink.numbers()) == 3
    assert (report.progress.rows, report.progress.dead_letters) == (205, 5)
    assert len(values_in(stage.bus, f"{topic}.dead")) == 5


def test_what_spark_fails_with_is_one_sentence(stage: Stage) -> None:
    topic = a_topic(stage.bus, [1])

    def burst(rows: "DataFrame") -> "DataFrame":
        return rows.selectExpr("assert_true(number > 5, 'it is too small') is null as number")

    with pytest.raises(PipelineError, match="it is too small") as raised:
        stage.run(a_pipeline(topic, stage.sink, transform=burst))

    status = find_run(stage.directory, "r")
    assert (status.state, status.message) == (FAILED, str(raised.value))
    assert "\n" not in str(raised.value)


@pytest.mark.slow
def test_a_batch_that_failed_between_two_sinks_is_written_once_by_each(stage: Stage) -> None:
    topic = a_topic(stage.bus, [1, "two", 3])

    def fail(batch_id: int) -> None:
        raise SinkError("the second sink is full; make room")

    broken = JsonFiles(stage.directory / "other", on_write=fail)
    with pytest.raises(SinkError, match="the second sink is full"):
        stage.run(a_pipeline(topic, stage.sink, broken))
    assert find_run(stage.directory, "r").state == FAILED
    mended = JsonFiles(stage.directory / "other")
    report = stage.run(a_pipeline(topic, stage.sink, mended))

    assert stage.sink.numbers() == mended.numbers() == [1, 3]
    # A batch that some sink had is looked through again.
    assert (report.progress.rows, report.progress.dead_letters) == (3, 1)


def test_a_run_that_is_told_to_end_ends_after_the_batch_it_has_in_hand(stage: Stage) -> None:
    topic = a_topic(stage.bus, range(10))
    gate = Gate()
    sink = JsonFiles(stage.directory / "out", on_write=gate)
    ending = stage.start(a_pipeline(topic, sink, max_rows=5), trigger=Trigger())
    stage.wait_until(gate.is_reached.is_set)

    stage.stop.set()
    stage.wait_until(lambda: stage.state == STOPPING)
    assert not ending.done()
    gate.open()

    report = ending.result(PATIENCE_S)
    assert (report.state, report.is_stopped, report.progress.batches) == (STOPPED, True, 1)
    checkpoint = stage.directory / "pipelines/r/checkpoint"
    assert (checkpoint / "commits/0").exists()
    assert not (checkpoint / "commits/1").exists()
    stage.stop.clear()
    stage.run(a_pipeline(topic, JsonFiles(stage.directory / "out")))
    assert sink.numbers() == list(range(10))


def test_a_second_run_is_refused_while_the_first_runs(stage: Stage) -> None:
    topic = a_topic(stage.bus, range(10))
    pipeline = a_pipeline(topic, stage.sink)
    ending = stage.start(pipeline, trigger=Trigger("100ms"))
    stage.wait_until(lambda: stage.sink.numbers() == list(range(10)))

    with pytest.raises(RunError, match=r"run name r is in use by run r \(process \d+\)"):
        stage.run(pipeline)
    checkpoint = str(stage.view.facts["checkpoint"])
    with pytest.raises(RunError, match=r"checkpoint .* is in use by run r .*pipeline stop r"):
        stage.run(pipeline, name="other", checkpoint=checkpoint)
    assert find_run(stage.directory, "r").state == RUNNING

    stage.stop.set()
    assert ending.result(PATIENCE_S).is_stopped


def test_a_source_with_an_end_is_one_batch_without_a_checkpoint(stage: Stage) -> None:
    topic = a_topic(stage.bus, [*range(10), "bad"])

    report = stage.run(a_pipeline(topic, stage.sink, end="latest"))

    assert stage.sink.numbers() == list(range(10))
    progress = report.progress
    assert (report.state, progress.rows, progress.dead_letters) == (FINISHED, 11, 1)
    assert not (stage.directory / "pipelines/r/checkpoint").exists()


def test_a_source_that_has_nothing_in_its_range_is_a_batch_of_no_rows(stage: Stage) -> None:
    topic = a_topic(stage.bus)
    # Spark drops what follows from an empty shuffle, and with it the count of rows.
    shuffled = replace(
        a_pipeline(topic, stage.sink, end="latest"), transform=lambda rows: rows.repartition(2)
    )

    report = stage.run(shuffled)

    assert (report.state, report.progress.rows) == (FINISHED, 0)


@pytest.mark.slow
def test_a_failure_that_passes_is_got_over(stage: Stage) -> None:
    topic = a_topic(stage.bus, range(10))
    tries = list[int]()

    class PassingError(SinkError):
        is_retriable = True

    def fail_once(batch_id: int) -> None:
        tries.append(batch_id)
        if len(tries) == 1:
            raise PassingError("the database is away")

    sink = JsonFiles(stage.directory / "out", on_write=fail_once)
    report = stage.run(a_pipeline(topic, sink))

    assert sink.numbers() == list(range(10))
    assert (tries, report.progress.restarts) == ([0, 0], 1)
    assert any("the database is away; trying again" in each for each in stage.view.sentences)


@pytest.mark.slow
def test_a_failure_that_stays_ends_the_run(stage: Stage) -> None:
    topic = a_topic(stage.bus, range(10))

    class PassingError(SinkError):
        is_retriable = True

    def fail(batch_id: int) -> None:
        raise PassingError("the database is away")

    with pytest.raises(SinkError, match="the database is away"):
        stage.run(
            a_pipeline(topic, JsonFiles(stage.directory / "out", on_write=fail)), max_restarts=1
        )
    assert find_run(stage.directory, "r").message == "the database is away"


def test_a_broker_that_comes_back_is_waited_for(
    spark: "SparkSession", tmp_path: Path, unused_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.pipelines.running.bus_watch.LOOK_INTERVAL_S", 0.1)
    with running_broker(tmp_path / "data", port=unused_port) as broker:
        stage = Stage(spark, Bus(broker.bootstrap), tmp_path)
        topic = a_topic(stage.bus, range(10))
        ending = stage.start(a_pipeline(topic, stage.sink), trigger=Trigger())
        stage.wait_until(lambda: stage.sink.numbers() == list(range(10)))

        broker.stop()
        stage.wait_until(lambda: stage.state == WAITING)
        broker.start()
        send(stage.bus, topic, range(10, 20))
        stage.wait_until(lambda: stage.sink.numbers() == list(range(20)))
        stage.stop.set()

        assert ending.result(PATIENCE_S).is_stopped
    assert [each.split(" at ")[0] for each in stage.view.sentences[:1]] == ["no broker answers"]
    assert stage.view.sentences[1].endswith("answers again")


@pytest.mark.slow
def test_a_broker_that_stays_away_ends_the_run_with_one_sentence(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.pipelines.running.bus_watch.LOOK_INTERVAL_S", 0.1)
    with running_broker() as broker:
        stage = Stage(spark, Bus(broker.bootstrap), tmp_path)
        topic = a_topic(stage.bus, range(10))
        ending = stage.start(a_pipeline(topic, stage.sink), trigger=Trigger(), bus_timeout_s=0.5)
        stage.wait_until(lambda: stage.sink.numbers() == list(range(10)))

        broker.stop()

        with pytest.raises(SourceError, match=r"no broker has answered at .* for 0.5 s; start it"):
            ending.result(PATIENCE_S)
    assert find_run(tmp_path, "r").state == FAILED
