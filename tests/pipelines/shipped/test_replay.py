from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.pipelines.sinks.topics import Seen, produce, records_on

from headrace.client.bus import Bus
from headrace.pipelines import registry
from headrace.pipelines.definition import Pipeline, Run, Sink
from headrace.pipelines.errors import PipelineDefinitionError, SourceError
from headrace.pipelines.sinks.lake import LakeSink, compact_lake
from headrace.pipelines.sinks.lake.source import LakeSource
from headrace.pipelines.sinks.topic import TopicSink, create_topic
from headrace.pipelines.source import TopicSource
from headrace.pipelines.spans import Batch
from headrace.testing import RunningBroker, running_broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TIME_MS = 1_794_823_200_000  # 2026-11-16T10:00Z
MINUTE_MS = 60_000


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    with running_broker() as running:
        yield running


@pytest.fixture
def run(spark: "SparkSession", broker: RunningBroker) -> Run:
    return Run(spark, Bus(broker.bootstrap), "r", "app", tell=lambda text: None)


def originals() -> list[Seen]:
    """Records with all that is rare: null keys, null values, repeated headers, times going back."""
    return [
        Seen(
            partition=number % 3,
            offset=number // 3,
            key=None if number % 5 == 0 else f"k{number}".encode(),
            value=None if number % 7 == 0 else b"\xff" + f"v{number}".encode(),
            time_ms=TIME_MS + (number * 17 % 90) * MINUTE_MS,
            headers=(("h", b"1"), ("h", None), ("i", b"")) if number % 2 else (),
        )
        for number in range(30)
    ]


def build(name: str, options: dict[str, str], source: TopicSource | None, *sinks: Sink) -> Pipeline:
    return registry.find(name).build(options, source, sinks)


def write_once(pipeline: Pipeline, run: Run, batch_id: int = 0) -> None:
    rows = pipeline.transform(pipeline.decoder.decode(pipeline.source.batch(run)))
    for sink in pipeline.sinks:
        sink.open(run).write(rows, Batch(batch_id))


@pytest.mark.spark
def test_what_was_archived_comes_back_as_it_was(run: Run, tmp_path: Path) -> None:
    create_topic(run, "first", 3)
    produce(run.bus.bootstrap, "first", originals()[:15])
    lake = LakeSink(str(tmp_path))
    archived = TopicSource(topics=("first",), start="0", end="5")
    write_once(build("archive", {}, archived, lake), run, 0)
    produce(run.bus.bootstrap, "first", originals()[15:])
    archived = TopicSource(topics=("first",), start="5")
    write_once(build("archive", {}, archived, lake), run, 1)
    compact_lake(run.spark, str(tmp_path))
    expected = sorted(originals(), key=lambda record: record[:2])
    assert records_on(run.bus.bootstrap, "first") == expected

    write_once(build("replay", {"from": str(tmp_path)}, None, TopicSink("second")), run)

    assert records_on(run.bus.bootstrap, "second") == expected


@pytest.mark.spark
@pytest.mark.slow
def test_a_range_is_put_back_and_partitions_may_go_by_key(run: Run, tmp_path: Path) -> None:
    create_topic(run, "ranged", 3)
    produce(run.bus.bootstrap, "ranged", originals())
    expected = sorted(originals(), key=lambda record: record[:2])
    archived = TopicSource(topics=("ranged",), end="latest")
    write_once(build("archive", {}, archived, LakeSink(str(tmp_path))), run)

    start, end = f"@{TIME_MS + 20 * MINUTE_MS}", f"@{TIME_MS + 60 * MINUTE_MS}"
    chosen = TopicSource(topics=("ranged",), start=start, end=end)
    options = {"from": str(tmp_path), "partitions": "by-key", "create": "2"}
    write_once(build("replay", options, chosen, TopicSink("third", create="2")), run)
    third = records_on(run.bus.bootstrap, "third")
    assert {record.partition for record in third} == {0, 1}
    within = range(TIME_MS + 20 * MINUTE_MS, TIME_MS + 60 * MINUTE_MS)
    assert sorted(record[2:] for record in third if record.key) == sorted(
        record[2:] for record in expected if record.time_ms in within and record.key
    )

    chosen = TopicSource(topics=("ranged",), start="2", end="4")
    write_once(build("replay", {}, chosen, TopicSink("fourth")), run)
    assert [record[2:] for record in records_on(run.bus.bootstrap, "fourth")] == [
        record[2:] for record in expected if 2 <= record.offset < 4
    ]


def test_a_topic_is_not_replayed_onto_itself_unless_that_is_said() -> None:
    source = TopicSource(topics=("orders",))

    with pytest.raises(PipelineDefinitionError, match="same_topic=yes"):
        build("replay", {}, source, TopicSink("orders"))
    with pytest.raises(PipelineDefinitionError, match="same_topic=yes"):
        build("replay", {}, TopicSource(pattern="ord.*"), TopicSink("orders"))
    with pytest.raises(PipelineDefinitionError, match="topics the records came from"):
        build("replay", {"from": "lake"}, None, TopicSink(None))

    build("replay", {"same_topic": "yes"}, source, TopicSink("orders"))
    build("replay", {"from": "lake"}, source, TopicSink("orders"))


def test_it_ends_with_what_is_there() -> None:
    built = build("replay", {}, TopicSource(topics=("orders",)), TopicSink("again"))

    assert built.source.is_bounded_only
    assert build("replay", {"from": "lake"}, None, TopicSink("again")).source.is_bounded_only


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"partitions": "some"}, "partitions=some"),
        ({"same_topic": "maybe"}, "same_topic=maybe"),
    ],
)
def test_options_that_make_no_sense_are_named(options: dict[str, str], said: str) -> None:
    with pytest.raises(PipelineDefinitionError, match=said):
        build("replay", options, TopicSource(topics=("orders",)), TopicSink("again"))


def test_without_a_topic_to_write_to_it_says_how_to_name_one() -> None:
    with pytest.raises(PipelineDefinitionError, match="--to topic:NAME"):
        build("replay", {}, TopicSource(topics=("orders",)))


def test_a_lake_has_no_pattern_and_no_end_to_count_from(tmp_path: Path) -> None:
    with pytest.raises(PipelineDefinitionError, match="not read by a pattern"):
        build("replay", {"from": "lake"}, TopicSource(pattern="o.*"), TopicSink("again"))
    with pytest.raises(PipelineDefinitionError, match="counts from an end"):
        LakeSource(path="lake", start="-10")
    with pytest.raises(PipelineDefinitionError, match="is no position"):
        LakeSource(path="lake", end="tomorrow")
    with pytest.raises(SourceError, match="there is no lake"):
        LakeSource(path=str(tmp_path / "none")).check(Bus())
