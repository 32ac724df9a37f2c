"""Topics as a source: where it begins and ends, what it refuses; mostly without Spark."""

import json
import re
import socket
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer

from headrace.client.admin import Admin
from headrace.pipelines import Bus, Run, TopicSource, read_topic, stream_topic
from headrace.pipelines.errors import PipelineDefinitionError, SourceError
from headrace.pipelines.source import java_pattern, matches
from headrace.testing import RunningBroker, running_broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BASE_MS = 1_794_816_000_000  # 2026-11-16T08:00Z
PER_PARTITION = 50


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    """Topics readings (2 partitions of 50, a second apart), short (5 and 0) and other.one."""
    with running_broker() as broker:
        admin = Admin(Bus(broker.bootstrap), timeout_s=120)
        for name, partitions in (("readings", 2), ("short", 2), ("other.one", 1)):
            admin.create_topic(name, partitions)
        producer = Producer({"bootstrap.servers": broker.bootstrap})
        for number in range(PER_PARTITION * 2):
            producer.produce(
                "readings",
                json.dumps({"n": number, "offset": "mine"}),
                key=f"k{number}",
                partition=number % 2,
                timestamp=BASE_MS + number // 2 * 1000,
                headers=[("h", b"\xff")],
            )
        for number in range(5):
            producer.produce("short", b"%d" % number, partition=0, timestamp=BASE_MS)
        producer.produce("other.one", b"x", timestamp=BASE_MS)
        assert producer.flush(120) == 0
        yield broker


@pytest.fixture(scope="module")
def bus(broker: RunningBroker) -> Bus:
    return Bus(broker.bootstrap)


def delete_before(bus: Bus, topic: str, offset: int) -> None:
    Admin(bus, timeout_s=120).delete_records({(topic, 0): offset})


def ranges(bus: Bus, **said: Any) -> list[tuple[int, int]]:
    source = TopicSource(**{"topics": ("readings",), **said})
    return list(source.ranges(bus).values())


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (None, None, (0, 50)),
        ("oldest", "latest", (0, 50)),
        ("latest", None, (50, 50)),
        ("10", "20", (10, 20)),
        ("10", "5", (5, 5)),
        ("60", None, (50, 50)),  # an offset that is not there yet: nothing
        ("0", "1000", (0, 50)),
        (f"@{BASE_MS + 10_000}", None, (10, 50)),
        (f"@{BASE_MS + 10_000}", f"@{BASE_MS + 12_000}", (10, 12)),
        (f"@{BASE_MS + 10_500}", None, (11, 50)),
        ("2027-01-01", None, (50, 50)),  # what Spark calls "no offset matched"
        ("-10", None, (40, 50)),
        ("+10", "-10", (10, 40)),
    ],
)
def test_a_batch_names_its_offsets(
    bus: Bus, start: str | None, end: str | None, expected: tuple[int, int]
) -> None:
    assert ranges(bus, start=start, end=end) == [expected, expected]


def test_a_pattern_means_whole_names(bus: Bus) -> None:
    source = TopicSource(pattern="(sh|oth).*t|other\\..*")

    assert sorted({topic for topic, _ in source.ranges(bus)}) == ["other.one", "short"]


def test_no_broker_is_told_at_once_with_the_fix() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        bootstrap = f"127.0.0.1:{unused.getsockname()[1]}"

        with pytest.raises(SourceError, match=f"no broker answers at {bootstrap}.*headrace serve"):
            TopicSource(topics=("readings",)).check(Bus(bootstrap))


def test_a_bootstrap_without_a_port_is_told(bus: Bus) -> None:
    with pytest.raises(SourceError, match="write HOST:PORT"):
        TopicSource(topics=("readings",)).check(Bus("localhost"))


def test_a_missing_topic_is_told_with_its_neighbours(bus: Bus) -> None:
    with pytest.raises(SourceError, match=r"no topic reading at .*did you mean readings\?.*create"):
        TopicSource(topics=("reading",)).check(bus)


def test_a_pattern_without_topics_is_told(bus: Bus) -> None:
    with pytest.raises(SourceError, match=r"matches nothing\.\*"):
        TopicSource(pattern="nothing.*").check(bus)


def test_an_expired_start_names_the_first_offset_there_is() -> None:
    with running_broker() as broker:
        bus = Bus(broker.bootstrap)
        producer = Producer({"bootstrap.servers": broker.bootstrap})
        for number in range(20):
            producer.produce("aging", b"%d" % number)
        assert producer.flush(120) == 0
        delete_before(bus, "aging", 12)
        source = TopicSource(topics=("aging",), start="3")

        with pytest.raises(SourceError, match=r"3, has expired: partition 0 of aging begins at 12"):
            source.check(bus)
        with pytest.raises(SourceError, match="begins at 12"):
            source.ranges(bus)
        lenient = TopicSource(topics=("aging",), start="3", on_data_loss="go-on")
        lenient.check(bus)
        assert list(lenient.ranges(bus).values()) == [(12, 20)]
        assert list(TopicSource(topics=("aging",)).ranges(bus).values()) == [(12, 20)]

        with pytest.raises(SourceError, match="the checkpoint's next offset, 5, has expired"):
            TopicSource(topics=("aging",)).check_resumed(bus, {"aging": {"0": 5}})
        with pytest.raises(SourceError, match="500, is not there yet"):
            TopicSource(topics=("aging",)).check_resumed(bus, {"aging": {"0": 500}})
        with pytest.raises(SourceError, match="topic gone, which is no longer"):
            TopicSource(topics=("aging",)).check_resumed(bus, {"gone": {"0": 5}})
        TopicSource(topics=("aging",)).check_resumed(bus, {"aging": {"0": 20}})


def test_a_stream_cannot_begin_at_an_offset_that_is_not_there_yet(bus: Bus) -> None:
    with pytest.raises(SourceError, match="60, is not there yet: partition 0 of readings ends at"):
        TopicSource(topics=("readings",), start="60").check(bus)
    TopicSource(topics=("readings",), start="60", end="70").check(bus)


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        ({"topics": "readings"}, "one text"),
        ({"topics": ("a",), "pattern": "b"}, "not both"),
        ({"topics": ("a",), "start": "yesterday"}, "'yesterday' is no position; write oldest"),
        ({"topics": ("a",), "start": "@99999999999999999999"}, "years 1970 to 9999"),
        ({"topics": ("a",), "end": "99999999999999999999"}, "no offset is beyond"),
        ({"pattern": "("}, "no regular expression"),
        ({"topics": ("a",), "on_data_loss": "ignore"}, "write fail or go-on"),
        ({"topics": ("a",), "max_rows_per_batch": 0}, "write 1 or more"),
    ],
)
def test_nonsense_is_refused_when_it_is_written(said: dict[str, Any], complaint: str) -> None:
    with pytest.raises(PipelineDefinitionError, match=complaint):
        TopicSource(**said)


def test_what_is_said_wins_over_what_a_module_says() -> None:
    own = TopicSource(topics=("a",), start="latest", max_rows_per_batch=10)

    assert TopicSource(start="5").over(own) == TopicSource(
        topics=("a",), start="5", max_rows_per_batch=10
    )
    assert TopicSource(pattern="b.*").over(own).topics == ()


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (TopicSource(topics=("a", "b")), "topics a, b from the oldest"),
        (TopicSource(topics=("a",), start="-1h", end="latest"), "topic a from -1h to the latest"),
        (TopicSource(pattern="a.*", start="7"), "topics like a.* from 7"),
    ],
)
def test_a_source_says_what_it_is(source: TopicSource, words: str) -> None:
    assert source.describe() == words


def run_on(spark: "SparkSession", bus: Bus) -> Run:
    return Run(spark=spark, bus=bus, name="test", app_id="test")


@pytest.mark.spark
def test_a_batch_reads_its_range_and_no_more(spark: "SparkSession", bus: Bus) -> None:
    source = TopicSource(
        topics=("readings", "short"), start=f"@{BASE_MS + 47_000}", min_partitions=4
    )

    rows = source.batch(run_on(spark, bus)).select("topic", "partition", "offset").collect()

    assert sorted(map(tuple, rows)) == [
        ("readings", number, offset) for number in (0, 1) for offset in (47, 48, 49)
    ]


@pytest.mark.spark
def test_an_empty_batch_has_the_columns_of_a_record(spark: "SparkSession", bus: Bus) -> None:
    full = TopicSource(topics=("readings",)).batch(run_on(spark, bus))
    empty = TopicSource(topics=("readings",), start="latest").batch(run_on(spark, bus))

    assert empty.schema.simpleString() == full.schema.simpleString()
    assert empty.collect() == []


@pytest.mark.spark
def test_a_stream_begins_at_its_start(spark: "SparkSession", bus: Bus) -> None:
    source = TopicSource(pattern="readings|short", start=f"@{BASE_MS + 48_000}")
    found = list[tuple[str, int]]()

    def keep(rows: Any, batch_id: int) -> None:
        found.extend((row.topic, row.offset) for row in rows.collect())

    query = (
        source.stream(run_on(spark, bus))
        .writeStream.foreachBatch(keep)
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(180)

    assert sorted(found) == [("readings", 48), ("readings", 48), ("readings", 49), ("readings", 49)]


@pytest.mark.spark
def test_a_topic_is_read_as_a_table_in_a_notebook(spark: "SparkSession", bus: Bus) -> None:
    frame = read_topic(spark, "readings", start="48", end="49", bootstrap=bus.bootstrap)

    assert frame.columns == [
        "key", "value", "timestamp", "partition", "offset", "headers", "topic", "n", "value_offset",
    ]  # fmt: skip
    rows = sorted(frame.collect(), key=lambda row: row.partition)
    assert [(row.key, row.n, row.offset, row.value_offset) for row in rows] == [
        ("k96", 96, 48, "mine"),
        ("k97", 97, 48, "mine"),
    ]
    assert rows[0].headers[0].asDict() == {"key": "h", "value": "0xFF"}


@pytest.mark.spark
def test_a_topic_is_streamed_as_a_table(spark: "SparkSession", bus: Bus) -> None:
    frame = stream_topic(spark, "readings", start="49", bootstrap=bus.bootstrap)
    name = f"streamed_{time.monotonic_ns()}"

    query = frame.writeStream.format("memory").queryName(name).trigger(availableNow=True).start()
    assert query.awaitTermination(180)

    assert sorted(row.n for row in spark.table(name).collect()) == [98, 99]


@pytest.mark.parametrize("topic", ["orders", "orders.dead-letters", "dead-letters", "x"])
@pytest.mark.parametrize("pattern", [".*", "orders.*|x", "orders", r"orders\.dead-letters", "a|x"])
def test_a_pattern_leaves_dead_letters_out_unless_it_names_them(topic: str, pattern: str) -> None:
    is_read = matches(pattern, topic)

    assert is_read == bool(re.fullmatch(java_pattern(pattern), topic))
    is_letters = topic == "orders.dead-letters"
    is_named = "dead-letters" in pattern
    assert is_read == (bool(re.fullmatch(pattern, topic)) and (not is_letters or is_named))
