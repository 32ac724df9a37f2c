"""A run never takes one log for another, nor one batch for another of the same number."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.pipelines.running.stage import (
    PATIENCE_S,
    Gate,
    Stage,
    a_pipeline,
    a_topic,
    again,
    committed,
    send,
)

from headrace.client.bus import Bus
from headrace.pipelines.errors import PipelineError, RunError, SinkError, SourceError
from headrace.pipelines.running.batch import without
from headrace.pipelines.running.positions import MARK
from headrace.pipelines.running.settings import Trigger
from headrace.pipelines.sinks.console import Console
from headrace.pipelines.sinks.topic import TopicSink
from headrace.pipelines.source import TopicSource
from headrace.pipelines.spans import Log, Spans
from headrace.testing import running_broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_a_topic_made_again_under_its_name_is_refused_with_the_ways_out(stage: Stage) -> None:
    topic = a_topic(stage.bus, range(10), partitions=1)
    pipeline = a_pipeline(topic, stage.sink)
    stage.run(pipeline)
    again(stage.bus, topic, range(100, 115))

    with pytest.raises(RunError, match=f"topic {topic} was deleted and made again") as raised:
        stage.run(pipeline)

    assert "--on-other-log anew" in str(raised.value)
    assert stage.sink.numbers() == list(range(10))


def test_a_topic_made_again_is_read_from_its_start_if_that_is_asked_for(stage: Stage) -> None:
    topic = a_topic(stage.bus, range(10), partitions=1)
    pipeline = a_pipeline(topic, stage.sink)
    stage.run(pipeline)
    again(stage.bus, topic, range(100, 115))

    stage.run(pipeline, on_other_log="anew")
    send(stage.bus, topic, range(115, 120), partitions=1)
    stage.run(pipeline)

    assert stage.sink.numbers() == [*range(10), *range(100, 120)]


def test_what_is_read_anew_is_not_written_twice_of_the_topics_that_stayed(stage: Stage) -> None:
    stays, goes = (a_topic(stage.bus, [number], partitions=1) for number in (1, 2))
    pipeline = a_pipeline((stays, goes), stage.sink)
    stage.run(pipeline)
    again(stage.bus, goes, [3])

    stage.run(pipeline, on_other_log="anew")

    assert stage.sink.numbers() == [1, 2, 3]


def test_a_run_that_began_on_an_empty_topic_leaves_nothing_out_when_it_begins_anew(
    stage: Stage,
) -> None:
    topic = a_topic(stage.bus, partitions=1)
    pipeline = a_pipeline(topic, stage.sink, start="latest")
    stage.run(pipeline)
    again(stage.bus, topic, range(10))

    stage.run(pipeline, on_other_log="anew")

    assert stage.sink.numbers() == list(range(10))


def test_another_cluster_is_refused_or_taken_for_a_copy_if_that_is_said(stage: Stage) -> None:
    topic = a_topic(stage.bus, range(10), partitions=1)
    pipeline = a_pipeline(topic, stage.sink)
    stage.run(pipeline)
    with running_broker() as other:
        stage.bus = Bus(other.bootstrap)
        a_topic(stage.bus, range(15), partitions=1, name=topic)

        with pytest.raises(RunError, match="has read the cluster"):
            stage.run(pipeline)
        stage.run(pipeline, on_other_log="same")

    assert stage.sink.numbers() == list(range(15))


def test_a_topic_made_again_while_a_batch_is_written_ends_the_run(stage: Stage) -> None:
    topic = a_topic(stage.bus, range(10), partitions=1)
    gate = Gate()
    sink = type(stage.sink)(stage.directory / "gated", on_write=gate)
    ending = stage.start(a_pipeline(topic, sink), trigger=Trigger())
    stage.wait_until(gate.is_reached.is_set)

    again(stage.bus, topic, range(100, 120))
    gate.open()

    with pytest.raises(RunError, match=f"topic {topic} was deleted and made again"):
        ending.result(PATIENCE_S)
    assert sink.numbers() == list(range(10))


def _checkpoint(stage: Stage) -> Path:
    return stage.directory / "pipelines/r/checkpoint"


def test_a_batch_0_that_comes_again_with_more_records_adds_those(stage: Stage) -> None:
    topic = a_topic(stage.bus, range(10))
    pipeline = a_pipeline(topic, stage.sink)
    stage.run(pipeline)
    for name in ("offsets", "commits"):
        shutil.rmtree(_checkpoint(stage) / name)
    send(stage.bus, topic, range(10, 20))

    report = stage.run(pipeline)

    assert stage.sink.numbers() == list(range(20))
    assert (report.progress.batch_id, report.progress.rows) == (0, 20)
    assert any("only the others were written" in each for each in stage.view.sentences)


def test_records_of_thousands_of_ranges_are_left_out_and_the_others_stay(
    spark: "SparkSession",
) -> None:
    """As one condition they would be too deep for Spark."""
    spans = Spans.of({Log("many", number, "id"): (10, 20) for number in range(3000)})
    records = spark.createDataFrame(
        [("many", 0, 9), ("many", 2999, 10), ("many", 1500, 19), ("many", 7, 20), ("else", 7, 15)],
        "topic string, partition int, offset bigint",
    )

    left = without(records, spans).collect()

    assert [tuple(row) for row in left] == [("many", 0, 9), ("many", 7, 20), ("else", 7, 15)]


@pytest.mark.slow  # three hundred tasks a pass
def test_a_part_of_a_batch_of_hundreds_of_partitions_is_found(stage: Stage) -> None:
    topic = a_topic(stage.bus, range(300), partitions=300)
    pipeline = a_pipeline(topic, stage.sink)
    stage.run(pipeline)
    for name in ("offsets", "commits"):
        shutil.rmtree(_checkpoint(stage) / name)
    send(stage.bus, topic, range(300, 320), partitions=300)

    stage.run(pipeline)

    assert stage.sink.numbers() == list(range(320))


def test_a_checkpoint_that_was_put_back_writes_nothing_twice_and_leaves_nothing_out(
    stage: Stage,
) -> None:
    topic = a_topic(stage.bus, range(10))
    pipeline = a_pipeline(topic, stage.sink)
    stage.run(pipeline)
    shutil.copytree(_checkpoint(stage), stage.directory / "copy")
    send(stage.bus, topic, range(10, 20))
    stage.run(pipeline)
    shutil.rmtree(_checkpoint(stage))
    shutil.move(stage.directory / "copy", _checkpoint(stage))
    send(stage.bus, topic, range(20, 30))

    stage.run(pipeline)

    assert stage.sink.numbers() == list(range(30))


def test_other_sinks_than_the_checkpoints_are_refused_unless_that_is_said(stage: Stage) -> None:
    topic = a_topic(stage.bus, range(10))
    stage.run(a_pipeline(topic, stage.sink))
    other = type(stage.sink)(stage.directory / "other")

    with pytest.raises(RunError, match="wrote to JSON files in out, and this one writes to"):
        stage.run(a_pipeline(topic, other))
    send(stage.bus, topic, [10])
    stage.run(a_pipeline(topic, other), may_change_sinks=True)

    assert other.numbers() == [10]


def test_other_sinks_after_an_anew_that_failed_do_not_forget_where_it_goes_on(
    stage: Stage,
) -> None:
    stayed = a_topic(stage.bus, range(4))
    renewed = a_topic(stage.bus, range(10, 12))
    source = TopicSource(topics=(stayed, renewed))
    stage.run(replace(a_pipeline(stayed, stage.sink), source=source))
    again(stage.bus, renewed, [200, 201])
    send(stage.bus, stayed, [4, 5])
    other = type(stage.sink)(stage.directory / "other")
    broken = TopicSink("not-there", create="off")
    with pytest.raises(SinkError, match="no topic not-there"):
        stage.run(
            replace(a_pipeline(stayed, stage.sink, broken), source=source),
            on_other_log="anew",
            may_change_sinks=True,
        )

    stage.run(
        replace(a_pipeline(stayed, stage.sink, other), source=source),
        may_change_sinks=True,
    )

    assert stage.sink.numbers() == [0, 1, 2, 3, 4, 5, 10, 11, 200, 201]
    assert other.numbers() == [4, 5, 200, 201]


def test_a_run_that_only_shows_rows_keeps_no_position(
    stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    topic = a_topic(stage.bus, range(3), partitions=1)
    trial = a_pipeline(topic, Console(), transform=lambda rows: rows.select("number"))

    for _ in range(2):
        stage.run(trial, name="trial")
        assert capsys.readouterr().out.splitlines() == [f'{{"number":{n}}}' for n in range(3)]
        assert stage.view.facts["source"] == f"topic {topic} from the oldest"
        assert (stage.view.facts["checkpoint"], stage.view.facts["group"]) == (None, None)
    stage.run(a_pipeline(topic, stage.sink), name="trial")

    assert stage.sink.numbers() == [0, 1, 2]
    assert committed(stage.bus, "trial", topic) == {0: 3}


def test_a_start_that_has_expired_does_not_keep_a_run_from_going_on(stage: Stage) -> None:
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import AdminClient

    topic = a_topic(stage.bus, range(10), partitions=1)
    pipeline = a_pipeline(topic, stage.sink, start="5")
    stage.run(pipeline)
    admin = AdminClient(stage.bus.client_config())
    for future in admin.delete_records([TopicPartition(topic, 0, 8)]).values():
        future.result(PATIENCE_S)
    send(stage.bus, topic, [10], partitions=1)

    stage.run(pipeline)

    assert stage.sink.numbers() == list(range(5, 11))
    assert stage.view.facts["source"] == f"topic {topic} from where the run before ended"


def test_a_pattern_goes_on_without_a_topic_that_is_gone_if_losses_are_passed_over(
    stage: Stage,
) -> None:
    from confluent_kafka.admin import AdminClient

    stays = a_topic(stage.bus, [1])
    goes = a_topic(stage.bus, [2], name=f"{stays}.more")
    pattern = f"{stays}.*"
    stage.run(a_pipeline((), stage.sink, pattern=pattern))
    admin = AdminClient(stage.bus.client_config())
    admin.delete_topics([goes])[goes].result(PATIENCE_S)
    send(stage.bus, stays, [3])

    with pytest.raises(SourceError, match=f"has read topic {goes}.*--on-data-loss go-on"):
        stage.run(a_pipeline((), stage.sink, pattern=pattern))
    stage.run(a_pipeline((), stage.sink, pattern=pattern, on_data_loss="go-on"))

    assert stage.sink.numbers() == [1, 2, 3]


@pytest.mark.parametrize("has_records", [True, False])
def test_a_pattern_goes_on_without_a_topic_that_goes_while_a_batch_is_planned(
    stage: Stage, has_records: bool
) -> None:
    from confluent_kafka.admin import AdminClient

    stays = a_topic(stage.bus, [1], partitions=1)
    goes = a_topic(stage.bus, [2], partitions=1, name=f"{stays}.more")
    is_failing = list[bool]()

    def fail(batch_id: int) -> None:
        if is_failing:
            raise RuntimeError("the disk is full")

    sink = type(stage.sink)(stage.directory / "out", fail)
    pipeline = a_pipeline((), sink, pattern=f"{stays}.*", on_data_loss="go-on")
    stage.run(pipeline)
    send(stage.bus, stays, [10], partitions=1)
    if has_records:
        send(stage.bus, goes, [20], partitions=1)
    is_failing.append(True)
    with pytest.raises(PipelineError):
        stage.run(pipeline)
    is_failing.clear()
    admin = AdminClient(stage.bus.client_config())
    admin.delete_topics([goes])[goes].result(PATIENCE_S)

    stage.run(pipeline, max_restarts=0)
    send(stage.bus, stays, [11], partitions=1)
    stage.run(pipeline, max_restarts=0)

    assert sink.numbers() == [1, 2, 10, 11]
    told = [each for each in stage.view.sentences if "it is planned anew without" in each]
    assert len(told) == has_records


def test_a_second_anew_goes_on_where_the_kept_topics_are_now(stage: Stage) -> None:
    stays, goes = (a_topic(stage.bus, [number], partitions=1) for number in (1, 2))
    pipeline = a_pipeline((stays, goes), stage.sink)
    stage.run(pipeline)
    again(stage.bus, goes, [3])
    stage.run(pipeline, on_other_log="anew")
    send(stage.bus, stays, ["bad"] * 5, partitions=1)
    assert stage.run(pipeline).progress.dead_letters == 5
    again(stage.bus, goes, [4])

    report = stage.run(pipeline, on_other_log="anew")

    assert report.progress.dead_letters == 0
    assert stage.sink.numbers() == [1, 2, 3, 4]


def test_sinks_of_a_run_that_did_no_batch_bind_nobody(stage: Stage) -> None:
    topic = a_topic(stage.bus, range(3))

    def fail(batch_id: int) -> None:
        raise RuntimeError("no such place")

    with pytest.raises(PipelineError):
        stage.run(a_pipeline(topic, type(stage.sink)(stage.directory / "wrong", fail)))
    stage.run(a_pipeline(topic, stage.sink))

    assert stage.sink.numbers() == [0, 1, 2]


def test_an_application_that_takes_the_runs_group_later_is_left_alone_from_then_on(
    stage: Stage,
) -> None:
    from confluent_kafka import Consumer, TopicPartition

    topic = a_topic(stage.bus, range(10), partitions=1)
    ending = stage.start(a_pipeline(topic, stage.sink), trigger=Trigger())
    stage.wait_until(lambda: committed(stage.bus, "r", topic) == {0: 10})
    consumer = Consumer(stage.bus.client_config({"group.id": "r"}))
    consumer.commit(offsets=[TopicPartition(topic, 0, 3)], asynchronous=False)
    consumer.close()

    send(stage.bus, topic, range(10, 20), partitions=1)
    stage.wait_until(
        lambda: [each for each in stage.view.sentences if "an application has" in each]
    )
    stage.stop.set()

    assert ending.result(PATIENCE_S).is_stopped
    assert stage.sink.numbers() == list(range(20))
    assert committed(stage.bus, "r", topic) == {0: 3}


def test_an_applications_group_of_the_runs_name_is_left_alone(stage: Stage) -> None:
    from confluent_kafka import Consumer, TopicPartition

    topic = a_topic(stage.bus, range(10), partitions=1)
    consumer = Consumer(stage.bus.client_config({"group.id": "shop"}))
    consumer.commit(offsets=[TopicPartition(topic, 0, 3)], asynchronous=False)
    consumer.close()

    stage.run(a_pipeline(topic, stage.sink), name="shop")
    stage.run(a_pipeline(topic, stage.sink), name="mine")

    assert committed(stage.bus, "shop", topic) == {0: 3}
    assert committed(stage.bus, "mine", topic) == {0: 10}
    assert [each for each in stage.view.sentences if "group shop belongs to" in each]
    assert MARK not in str(stage.view.sentences)
