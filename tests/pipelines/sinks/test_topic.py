from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.pipelines.sinks.topics import records_on

from headrace.errors import PipelineDefinitionError, SinkError
from headrace.pipelines.bus import Bus
from headrace.pipelines.definition import RECORD_FIELDS, Run
from headrace.pipelines.sinks import topic as topic_module
from headrace.pipelines.sinks.topic import TopicSink, from_uri
from headrace.pipelines.sinks.topic_writer import SOURCE_HEADER, TopicWriter
from headrace.testing import RunningBroker, running_broker

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

TIME_MS = 1_700_000_000_123


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    with running_broker() as running:
        yield running


@pytest.fixture
def run(spark: "SparkSession", broker: RunningBroker, tmp_path: Path) -> Run:
    told: list[str] = []
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


def test_a_row_becomes_a_record_with_its_time_partition_and_headers(run: Run) -> None:
    sink = TopicSink("whole", guard="off").open(run)

    sink.write(made_from(run.spark, 0, 6), 0)

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

    TopicSink(None).open(run).write(rows, 0)

    (record,) = records_on(run.bus.bootstrap, "picked")
    assert (record.key, record.value, record.headers) == (None, None, ())


def test_what_a_dead_attempt_wrote_is_not_written_again(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = TopicSink("guarded", create="3")
    opened = sink.open(run)
    opened.write(made_from(run.spark, 0, 10), 0)
    whole = made_from(run.spark, 10, 20)
    with monkeypatch.context() as patch:
        # Part of the batch gets through; then the driver dies before it can note the end.
        patch.setattr(
            topic_module, "as_records", _only(topic_module.as_records, "source_offset < 14")
        )
        patch.setattr(topic_module.BatchNotes, "end", _die)
        with pytest.raises(KeyboardInterrupt):
            opened.write(whole, 1)

    again = sink.open(run)
    assert again.write(whole, 1)
    assert not again.write(whole, 1)
    assert not sink.open(run).write(whole, 1)

    values = sorted(record.value or b"" for record in records_on(run.bus.bootstrap, "guarded"))
    assert values == sorted(f"v{number}".encode() for number in range(20))


def test_another_apps_records_do_not_count(run: Run) -> None:
    other = Run(run.spark, run.bus, "o", "other", run.tell, f"{run.checkpoint}-other")
    rows = made_from(run.spark, 0, 4)
    opened = TopicSink("shared", create="3").open(run)
    TopicSink("shared", create="3").open(other).write(rows, 0)

    opened.write(rows, 0)

    seen = records_on(run.bus.bootstrap, "shared")
    assert len(seen) == 8
    assert {dict(record.headers)[SOURCE_HEADER].split(b"/")[0] for record in seen} == {
        b"app",
        b"other",
    }


def test_a_record_made_into_two_is_completed_by_the_one_that_is_missing(run: Run) -> None:
    one = made_from(run.spark, 0, 4).coalesce(1)
    starts = {"twice": {"0": 0, "1": 0, "2": 0}}
    topic_module.create_topic(run, "twice", 3)
    writer = TopicWriter(run.bus, "app", is_guarded=True, starts=starts, is_repeated=True)
    _write(writer, topic_module.as_records(one, "twice"))

    result = _write(writer, topic_module.as_records(one.union(one).coalesce(1), "twice"))

    assert (result["written"], result["left_out"]) == (4, 4)
    assert len(records_on(run.bus.bootstrap, "twice")) == 8


def test_a_missing_topic_is_refused_where_none_is_to_be_made(run: Run) -> None:
    with pytest.raises(SinkError, match="headrace topics create nowhere"):
        TopicSink("nowhere", create="off").open(run)


def test_a_partition_that_is_not_there_is_named(run: Run) -> None:
    opened = TopicSink("narrow", create="2").open(run)

    with pytest.raises(SinkError, match="topic narrow has no partition 2"):
        opened.write(made_from(run.spark, 0, 6), 0)


def test_rows_without_a_value_are_refused_with_the_fix(run: Run) -> None:
    with pytest.raises(SinkError, match="need a column value"):
        TopicSink("t").open(run).write(run.spark.range(1), 0)


def test_a_uri_and_its_options_are_read() -> None:
    assert from_uri("topic:orders", {"guard": "off"}) == TopicSink("orders", guard="off")
    assert from_uri("topic:", {}) == TopicSink(None)
    with pytest.raises(PipelineDefinitionError, match="guard=perhaps"):
        from_uri("topic:orders", {"guard": "perhaps"})
    with pytest.raises(PipelineDefinitionError, match="create=0"):
        from_uri("topic:orders", {"create": "0"})


def _only(as_records: Any, condition: str) -> Any:
    return lambda rows, topic: as_records(rows, topic).where(condition)


def _die(self: object, batch_id: int) -> None:
    raise KeyboardInterrupt


def _write(writer: TopicWriter, records: "DataFrame") -> Any:
    (row,) = records.mapInArrow(writer, topic_module.RESULT_SCHEMA).collect()
    assert row["error"] is None
    return row
