import json
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka.admin import AdminClient
from tests.pipelines.sinks.topics import give, records_on

from headrace.client.bus import Bus
from headrace.pipelines.definition import RECORD_FIELDS, Run
from headrace.pipelines.errors import PipelineDefinitionError, SinkError
from headrace.pipelines.loops import TopicsInUse
from headrace.pipelines.sinks import topic as topic_module
from headrace.pipelines.sinks import topic_leftovers
from headrace.pipelines.sinks.topic import BrokerAwayError, TopicSink, from_uri
from headrace.pipelines.sinks.topic_marks import SOURCE_HEADER
from headrace.pipelines.sinks.topic_notes import TopicNotes, TopicSinkNote
from headrace.pipelines.source import TopicSource
from headrace.pipelines.spans import Batch, Log, Spans
from headrace.testing import RunningBroker, running_broker

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

TIME_MS = 1_700_000_000_123


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    with running_broker() as running:
        yield running


@pytest.fixture(autouse=True)
def nothing_is_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dead attempt of these tests has had its answers: there is nothing to wait for."""
    monkeypatch.setattr(topic_leftovers, "SETTLE_S", 0.0)


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def run(spark: "SparkSession", broker: RunningBroker, tmp_path: Path, told: list[str]) -> Run:
    return Run(spark, Bus(broker.bootstrap), "r", "app", told.append, str(tmp_path / "checkpoint"))


def made_from(spark: "SparkSession", first: int, last: int) -> "DataFrame":
    """Rows for a topic, each made from the record of the topic `source` at its offset."""
    return spark.range(first, last, 1, 2).selectExpr(
        "cast(concat('k', id) as binary) key",
        "concat('v', id) value",
        "array(struct('h' as key, cast(cast(id as string) as binary) as value)) headers",
        "cast(id % 3 as int) partition",
        f"timestamp_millis({TIME_MS} + id) timestamp",
        f"""from_json(concat('{{"topic": "source", "partition": 0, "offset": ', id, '}}'),
                '{RECORD_FIELDS}') _record""",
    )


def batch(number: int, first: int, last: int) -> Batch:
    """The batch that holds these offsets of the topic `source`."""
    return Batch(number, Spans.of({Log("source", 0, "id"): (first, last)}))


def exploded(spark: "SparkSession", *values: str, tasks: int) -> "DataFrame":
    """Rows that were all made from one record, spread over so many tasks in their order."""
    listed = ", ".join(f"'{value}'" for value in values)
    return spark.range(0, len(values), 1, tasks).selectExpr(
        f"element_at(array({listed}), cast(id as int) + 1) value",
        "0 partition",
        f"""from_json('{{"topic": "source", "partition": 0, "offset": 7}}',
                '{RECORD_FIELDS}') _record""",
    )


def values_on(run: Run, topic: str) -> list[str]:
    return sorted((record.value or b"").decode() for record in records_on(run.bus.bootstrap, topic))


class Dying:
    """Has part of a batch written; the driver dies before it can note that it is done."""

    def __init__(self, patch: pytest.MonkeyPatch, condition: str) -> None:
        as_records, put = topic_module.as_records, TopicNotes.put

        def some(rows: "DataFrame", topic: str | None) -> "DataFrame":
            return as_records(rows, topic).where(condition)

        def die(notes: TopicNotes, note: TopicSinkNote) -> None:
            if note.written.spans and not note.is_begun:
                raise KeyboardInterrupt
            put(notes, note)

        patch.setattr(topic_module, "as_records", some)
        patch.setattr(TopicNotes, "put", die)


def test_a_row_becomes_a_record_with_its_time_partition_and_headers(run: Run) -> None:
    sink = TopicSink("whole", guard="off").open(run)

    sink.write(made_from(run.spark, 0, 6), Batch(0))

    seen = records_on(run.bus.bootstrap, "whole")
    assert [record.partition for record in seen] == [0, 0, 1, 1, 2, 2]
    assert {(record.key, record.value, record.time_ms, record.headers) for record in seen} == {
        (
            f"k{number}".encode(),
            f"v{number}".encode(),
            TIME_MS + number,
            (("h", str(number).encode()),),
        )
        for number in range(6)
    }


def test_nulls_stay_nulls_and_the_topic_may_be_a_column(run: Run) -> None:
    rows = run.spark.sql(
        "select 'picked' topic, cast(null as binary) key, cast(null as string) value, 0 partition"
    )
    topic_module.create_topic(run, "picked", 1)

    TopicSink(None).open(run).write(rows, Batch(0))

    (record,) = records_on(run.bus.bootstrap, "picked")
    assert (record.key, record.value, record.headers) == (None, None, ())


# A name that begins as those of Kafka's own topics is a user's all the same.
@pytest.mark.parametrize("topic", ["guarded", "__guarded"])
def test_what_a_dead_attempt_wrote_is_not_written_again(
    run: Run, monkeypatch: pytest.MonkeyPatch, topic: str
) -> None:
    sink = TopicSink(topic, create="3")
    opened = sink.open(run)
    assert give(opened, made_from(run.spark, 0, 10), batch(0, 0, 10))
    whole = made_from(run.spark, 10, 20)
    with monkeypatch.context() as patch:
        Dying(patch, "source_offset < 14")
        with pytest.raises(KeyboardInterrupt):
            give(opened, whole, batch(1, 10, 20))

    again = sink.open(run)
    assert give(again, whole, batch(1, 10, 20))
    assert not give(again, whole, batch(1, 10, 20))
    assert not give(sink.open(run), whole, batch(1, 10, 20))

    assert values_on(run, topic) == sorted(f"v{number}" for number in range(20))


@pytest.mark.parametrize(
    ("tasks", "condition"), [(1, "value = 'r3'"), (5, "spark_partition_id() = 0")]
)
def test_of_a_record_made_into_several_a_repeat_adds_those_that_are_missing(
    run: Run, monkeypatch: pytest.MonkeyPatch, tasks: int, condition: str
) -> None:
    """`x` twice: rows that are the same in all are told from one that was written twice."""
    name = f"exploded-{tasks}"
    rows = exploded(run.spark, "x", "r1", "r2", "r3", "x", tasks=tasks)
    sink = TopicSink(name, create="1")
    with monkeypatch.context() as patch:
        Dying(patch, condition)
        with pytest.raises(KeyboardInterrupt):
            give(sink.open(run), rows, batch(0, 7, 8))
    assert len(values_on(run, name)) == 1

    assert give(sink.open(run), rows, batch(0, 7, 8))

    assert values_on(run, name) == ["r1", "r2", "r3", "x", "x"]


def test_a_task_that_spark_tries_again_has_the_batch_repeated(run: Run, tmp_path: Path) -> None:
    """One of two tasks dies when the other has written its rows, which are of the same source."""
    sink = TopicSink("retried", create="1")
    rows = exploded(run.spark, *"abcdef", tasks=2)
    wait = waiting_once(run.bus.bootstrap, "retried", tmp_path / "flag")
    lost = rows.mapInArrow(dying_once(wait), rows.schema)

    with pytest.raises(BrokerAwayError, match="lost a task") as caught:
        give(sink.open(run), lost, batch(0, 7, 8))
    assert caught.value.is_retriable
    assert 0 < len(values_on(run, "retried")) < 6

    assert give(sink.open(run), lost, batch(0, 7, 8))
    assert values_on(run, "retried") == list("abcdef")


def test_a_stage_that_spark_runs_again_has_the_batch_repeated(run: Run, tmp_path: Path) -> None:
    """Shuffled rows are lost, as with an executor, when some that were read are on the topic."""
    sink = TopicSink("restaged", create="1")
    # More tasks than run at once: the last ones begin when the shuffled rows are gone.
    tasks = run.spark.sparkContext.defaultParallelism + 4
    values = [str(number) for number in range(4 * tasks)]
    environment: Any = run.spark._jvm
    manager = environment.org.apache.spark.SparkEnv.get().blockManager().diskBlockManager()
    folders = [Path(str(folder)) for folder in manager.localDirs()]
    wait = waiting_once(run.bus.bootstrap, "restaged", tmp_path / "flag")
    rows = exploded(run.spark, *values, tasks=2).repartition(tasks)
    lost = rows.mapInArrow(losing_once(wait, folders, tmp_path / "gone"), rows.schema)

    with pytest.raises(BrokerAwayError, match="lost a task") as caught:
        give(sink.open(run), lost, batch(0, 7, 8))
    assert caught.value.is_retriable
    assert 0 < len(values_on(run, "restaged")) < len(values)

    assert give(sink.open(run), lost, batch(0, 7, 8))
    assert values_on(run, "restaged") == sorted(values)


def test_an_older_checkpoint_that_is_put_back_finds_what_later_batches_wrote(
    run: Run, tmp_path: Path
) -> None:
    sink = TopicSink("restored", create="3")
    opened = sink.open(run)
    assert run.checkpoint
    give(opened, made_from(run.spark, 0, 2), batch(0, 0, 2))
    shutil.copytree(run.checkpoint, tmp_path / "copy")
    give(opened, made_from(run.spark, 2, 4), batch(1, 2, 4))
    give(opened, made_from(run.spark, 4, 6), batch(2, 4, 6))
    shutil.rmtree(run.checkpoint)
    shutil.copytree(tmp_path / "copy", run.checkpoint)

    again = sink.open(run)
    assert not give(again, made_from(run.spark, 0, 2), batch(0, 0, 2))
    give(again, made_from(run.spark, 2, 5), batch(1, 2, 5))  # planned otherwise this time
    again = sink.open(run)
    give(again, made_from(run.spark, 5, 8), batch(2, 5, 8))

    assert values_on(run, "restored") == [f"v{number}" for number in range(8)]


def test_notes_outlive_spark_s_own_files_of_the_checkpoint(run: Run) -> None:
    sink = TopicSink("renumbered", create="3")
    give(sink.open(run), made_from(run.spark, 0, 4), batch(7, 0, 4))

    again = sink.open(run)  # offsets/ and commits/ were removed: numbers begin anew

    assert not give(again, made_from(run.spark, 0, 4), batch(0, 0, 4))
    assert give(again, made_from(run.spark, 4, 6), batch(1, 4, 6))
    assert values_on(run, "renumbered") == [f"v{number}" for number in range(6)]


def test_a_target_that_was_made_again_starts_anew_and_that_is_told(
    run: Run, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = TopicSink("remade", create="3")
    give(sink.open(run), made_from(run.spark, 0, 9), batch(0, 0, 9))
    admin: Any = AdminClient({"bootstrap.servers": run.bus.bootstrap})
    admin.delete_topics(["remade"])["remade"].result(60)
    rows = made_from(run.spark, 9, 12)
    with monkeypatch.context() as patch:
        Dying(patch, "source_offset < 11")
        with pytest.raises(KeyboardInterrupt):
            give(sink.open(run), rows, batch(1, 9, 12))

    assert give(sink.open(run), rows, batch(1, 9, 12))

    assert values_on(run, "remade") == ["v10", "v11", "v9"]
    assert any("remade was deleted and made again" in sentence for sentence in told)


def test_notes_and_marks_of_the_version_before_are_understood(run: Run) -> None:
    """Batch 3 was being written: two of its records are there, under marks without a digest."""
    topic_module.create_topic(run, "former", 3)
    mark = "cast(concat('app/source/0/', _record.offset) as binary)"
    headers = f"array(struct('{SOURCE_HEADER}' as key, {mark} as value)) headers"
    old = made_from(run.spark, 10, 12).selectExpr("key", "value", "partition", headers)
    TopicSink("former", guard="off").open(replace(run, checkpoint=None)).write(old, Batch(3))
    folder = Path(f"{run.checkpoint}/topic-sink/former")
    folder.mkdir(parents=True)
    (folder / f"batch-{2:019}.done").write_text("{}")
    starts = {"former": {"0": 0, "1": 0, "2": 0}}
    (folder / f"batch-{3:019}.json").write_text(json.dumps(starts))

    opened = TopicSink("former").open(run)
    assert not give(opened, made_from(run.spark, 5, 10), batch(2, 5, 10))
    assert give(opened, made_from(run.spark, 10, 14), batch(3, 10, 14))

    assert values_on(run, "former") == ["v10", "v11", "v12", "v13"]


def test_rows_that_name_their_topics_are_compared_on_each(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("even", "odd"):
        topic_module.create_topic(run, name, 3)
    named = made_from(run.spark, 0, 6).selectExpr("*", "if(partition = 1, 'odd', 'even') topic")
    with monkeypatch.context() as patch:
        Dying(patch, "source_offset < 3")
        with pytest.raises(KeyboardInterrupt):
            give(TopicSink(None).open(run), named, batch(0, 0, 6))

    assert give(TopicSink(None).open(run), named, batch(0, 0, 6))

    assert values_on(run, "odd") == ["v1", "v4"]
    assert values_on(run, "even") == ["v0", "v2", "v3", "v5"]


def test_a_topic_that_only_a_later_batch_names_is_compared_too(run: Run, tmp_path: Path) -> None:
    for name in ("sooner", "later"):
        topic_module.create_topic(run, name, 3)
    first, second = (
        made_from(run.spark, start, start + 3).selectExpr("*", f"'{name}' topic")
        for start, name in ((0, "sooner"), (3, "later"))
    )
    assert run.checkpoint
    opened = TopicSink(None).open(run)
    shutil.copytree(run.checkpoint, tmp_path / "copy")
    give(opened, first, batch(0, 0, 3))
    give(opened, second, batch(1, 3, 6))
    shutil.rmtree(run.checkpoint)
    shutil.copytree(tmp_path / "copy", run.checkpoint)

    again = TopicSink(None).open(run)
    give(again, first, batch(0, 0, 3))
    give(again, second, batch(1, 3, 6))

    assert values_on(run, "sooner") == ["v0", "v1", "v2"]
    assert values_on(run, "later") == ["v3", "v4", "v5"]


def test_a_row_that_names_a_topic_the_run_reads_is_refused(run: Run) -> None:
    topic_module.create_topic(run, "looped", 1)
    in_use = TopicsInUse.of(TopicSource(pattern="loop.*"), "bad")
    reading = replace(run, refuse_topic=in_use.refuse)
    rows = run.spark.sql("select 'looped' topic, 'v' value")

    with pytest.raises(SinkError, match="topic looped would be read and written"):
        TopicSink(None).open(reading).write(rows, Batch(0))
    assert values_on(run, "looped") == []

    TopicSink(None, may_loop=True).open(reading).write(rows, Batch(0))
    assert values_on(run, "looped") == ["v"]


def test_tasks_that_run_twice_at_once_are_refused(run: Run) -> None:
    spark: Any = SimpleNamespace(conf={"spark.speculation": "true"})

    with pytest.raises(SinkError, match="guard=off"):
        TopicSink("t").open(replace(run, spark=spark))


def test_another_apps_records_do_not_count(run: Run) -> None:
    other = Run(run.spark, run.bus, "o", "other", run.tell, f"{run.checkpoint}-other")
    rows = made_from(run.spark, 0, 4)
    opened = TopicSink("shared", create="3").open(run)
    TopicSink("shared", create="3").open(other).write(rows, Batch(0))

    opened.write(rows, Batch(0))

    seen = records_on(run.bus.bootstrap, "shared")
    assert len(seen) == 8
    assert {dict(record.headers)[SOURCE_HEADER].split(b"/")[0] for record in seen} == {
        b"app",
        b"other",
    }


def test_a_missing_topic_is_refused_where_none_is_to_be_made(run: Run) -> None:
    with pytest.raises(SinkError, match="headrace topics create nowhere"):
        TopicSink("nowhere", create="off").open(run)


def test_a_partition_that_is_not_there_is_named(run: Run) -> None:
    opened = TopicSink("narrow", create="2").open(run)

    with pytest.raises(SinkError, match="topic narrow has no partition 2"):
        opened.write(made_from(run.spark, 0, 6), Batch(0))


def test_rows_without_a_value_are_refused_with_the_fix(run: Run) -> None:
    with pytest.raises(SinkError, match="need a column value"):
        TopicSink("t").open(run).write(run.spark.range(1), Batch(0))


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("a b", "contains one or more characters other than"),
        ("..", "'..' is not allowed"),
        ("x" * 250, "longer than the max allowed length 249"),
        ("__consumer_offsets", "'__consumer_offsets' is Kafka's own"),
    ],
)
def test_a_name_no_topic_can_have_is_refused_before_anything_is_read(name: str, fault: str) -> None:
    with pytest.raises(PipelineDefinitionError, match=f"topic {name}: no name for .*{fault}"):
        TopicSink(name)


def test_a_uri_and_its_options_are_read() -> None:
    assert from_uri("topic:orders", {"guard": "off"}) == TopicSink("orders", guard="off")
    assert from_uri("topic:", {}) == TopicSink(None)
    with pytest.raises(PipelineDefinitionError, match="guard=perhaps"):
        from_uri("topic:orders", {"guard": "perhaps"})
    with pytest.raises(PipelineDefinitionError, match="create=0"):
        from_uri("topic:orders", {"create": "0"})


def test_no_two_sinks_keep_their_notes_in_one_folder() -> None:
    names = [None, "_any", "any", "_any_", "orders"]

    assert len({topic_module.notes_folder(name) for name in names}) == len(names)


def waiting_once(bootstrap: str, topic: str, flag: Path) -> Callable[[], bool]:
    """Wait until a record is on the topic, and say so; the first time it is asked, in any task."""

    def wait() -> bool:
        from confluent_kafka import Consumer, TopicPartition

        if flag.exists():
            return False
        flag.touch()
        watcher: Any = Consumer({"bootstrap.servers": bootstrap, "group.id": "watcher"})
        watcher.assign([TopicPartition(topic, 0, 0)])
        return bool(watcher.consume(1, 120))

    return wait


def dying_once(wait: Callable[[], bool]) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Pass rows on; once, kill the worker that has row `f` as soon as a record is on the topic."""

    def pass_on(batches: Iterator[Any]) -> Iterator[Any]:
        for each in batches:
            if "f" in each.column("value").to_pylist() and wait():
                os.kill(os.getpid(), signal.SIGKILL)
            yield each

    return pass_on


def losing_once(
    wait: Callable[[], bool], folders: list[Path], gone: Path
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Pass rows on; once, remove what was shuffled as soon as the first task has a record there.

    The second task removes it, and those that run with it wait until it has.
    """

    def pass_on(batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        task: Any = TaskContext.get()
        deadline = time.monotonic() + 120
        if task.partitionId() == 1 and wait():
            for folder in folders:
                for file in folder.rglob("shuffle_*.data"):
                    file.unlink()
            gone.touch()
        while task.partitionId() > 1 and not gone.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        yield from batches

    return pass_on
