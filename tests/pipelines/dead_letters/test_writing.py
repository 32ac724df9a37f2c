"""Bad records to a topic, on real Spark and a real broker, byte for byte."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest
from tests.pipelines.decoders.records import records_of

from headrace.client.bus import Bus
from headrace.pipelines.dead_letters.letter import DeadLetter, default_topic
from headrace.pipelines.dead_letters.reading import each_once, read_letters
from headrace.pipelines.dead_letters.writing import bad_records, write
from headrace.pipelines.decoders import Json
from headrace.pipelines.definition import RECORD_SCHEMA, Decoder, Run
from headrace.pipelines.spans import Batch, Log, Spans
from headrace.pipelines.topic_positions import TopicPositions
from headrace.testing import running_broker

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

BAD = [b"\xff\x00", b"not json", b'{"sensor":5.5,"celsius":"hot"}']
DECODER = Json("sensor string, celsius double not null")


@pytest.fixture(scope="module")
def run(spark: "SparkSession") -> Iterator[Run]:
    with running_broker() as broker:
        yield Run(spark=spark, bus=Bus(broker.bootstrap), name="it's", app_id="a")


@pytest.fixture
def travelling() -> Iterator[None]:
    """Workers cannot import this module; what is defined here goes to them whole."""
    from pyspark import cloudpickle

    module = sys.modules[__name__]
    cloudpickle.register_pickle_by_value(module)
    yield
    cloudpickle.unregister_pickle_by_value(module)


def read_all(run: Run, topic: str) -> list[DeadLetter]:
    positions = TopicPositions(run.bus)
    partitions = positions.partitions([topic])
    starts, ends = positions.oldest(partitions), positions.ends(partitions)
    bounds = {each[1]: (starts[each], ends[each]) for each in partitions}
    letters = read_letters(run.bus, topic, bounds, timeout_s=120)
    return sorted(letters, key=lambda each: each.source.offset)


def test_a_letter_is_the_record_and_where_it_came_from(run: Run) -> None:
    records = records_of(run.spark, [b'{"celsius":1}', *BAD, None])
    # A tombstone is fine; a null value that some other decoder calls bad stays null.
    null = run.spark.createDataFrame(
        [(None, None, "other", 7, 99, datetime(2026, 1, 1), 0, None)], RECORD_SCHEMA
    )
    bad = bad_records(DECODER, records)

    batch = Batch(3, Spans.of({Log("in", 0, "the-id"): (0, 5)}), "the-cluster")
    count = write(run, DECODER, bad.drop("_error").union(null), "letters", batch)

    letters = read_all(run, "letters")
    assert count == 4
    assert [each.value for each in letters] == [*BAD, None]
    assert [each.key for each in letters] == [b"k1", b"k2", b"k3", None]
    assert [each.headers for each in letters] == [[("h", b"1")]] * 3 + [[]]
    assert [each.source for each in letters] == [
        ("it's", "the-cluster", "the-id", "in", 0, 1),
        ("it's", "the-cluster", "the-id", "in", 0, 2),
        ("it's", "the-cluster", "the-id", "in", 0, 3),
        ("it's", "the-cluster", "", "other", 7, 99),
    ]
    assert {each.cut for each in letters} == {""}
    assert {each.timestamp_ms for each in letters} == {1767225600000}
    assert [each.reason for each in letters[:3]] == [DECODER.explain(value) for value in BAD]


def test_written_twice_is_listed_once(run: Run) -> None:
    bad = bad_records(DECODER, records_of(run.spark, BAD))
    for _ in range(2):
        write(run, DECODER, bad, "twice")

    letters = read_all(run, "twice")

    assert len(letters) == 6
    assert len(list(each_once(letters))) == 3


@dataclass
class Foreign:
    """Somebody's decoder: not one of ours, looks at keys, and cannot explain itself."""

    can_fail = True

    def describe(self) -> str:
        return "foreign"

    def decode(self, records: "DataFrame") -> "DataFrame":
        return records.selectExpr(
            "named_struct('topic', topic, 'partition', partition, 'offset', offset) as _record",
            "if(key = 'k1', 'the key', if(value is null, 'gone', null)) as _error",
        )

    def explain_error(self, error: str, value: bytes | None) -> str | None:
        return f"wrong: {error}" if error == "the key" else None

    def explain(self, value: bytes | None) -> str:
        raise RuntimeError("no idea " + "x" * 2000)


def test_decoders_of_others_work_and_may_say_what_is_not_in_the_value(
    run: Run, travelling: None
) -> None:
    decoder: Decoder = Foreign()
    bad = bad_records(decoder, records_of(run.spark, [b"a", b"b", None]))

    assert write(run, decoder, bad, "foreign") == 2

    key, gone = read_all(run, "foreign")
    assert (key.value, key.reason) == (b"b", "wrong: the key")
    assert gone.reason.startswith("it cannot be decoded, nor explained: RuntimeError: no idea")
    assert len(gone.reason) <= 1001


def test_letters_too_large_for_their_topic_are_cut_and_nothing_stops(run: Run) -> None:
    make_topic(run, "narrow", "1000")
    told = list[str]()
    run = replace(run, tell=told.append)
    huge = [b"{" * 300_000, b"{small", b"{" * 2_000_000]
    bad = bad_records(DECODER, records_of(run.spark, huge))

    assert write(run, DECODER, bad, "narrow") == 3

    letters = read_all(run, "narrow")
    assert [each.value_size for each in letters] == [300_000, None, 2_000_000]
    assert letters[1].value == b"{small"
    assert letters[0].cut.startswith("value cut at ")
    assert told == [
        "2 dead letters were cut to what topic narrow takes: raise its max.message.bytes to have "
        "them whole"
    ]


def test_a_letter_has_the_ids_the_bus_gives_where_its_batch_has_none(run: Run) -> None:
    make_topic(run, "in", "1000000")
    bad = bad_records(DECODER, records_of(run.spark, [b"{"]))

    write(run, DECODER, bad, "asked")

    (letter,) = read_all(run, "asked")
    assert len(letter.source.topic_id) == len(letter.source.cluster_id) == 22


def make_topic(run: Run, topic: str, limit: str) -> None:
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.cimpl import NewTopic

    config: dict[str, Any] = run.bus.client_config()
    new = NewTopic(topic, 1, 1, config={"max.message.bytes": limit})
    admin = AdminClient(config)
    admin.create_topics([new])[topic].result(120)


def test_no_bad_record_makes_no_topic(run: Run) -> None:
    none = bad_records(DECODER, records_of(run.spark, [b'{"celsius":1}']))

    assert write(run, DECODER, none, "nothing") == 0

    from confluent_kafka.admin import AdminClient

    config: dict[str, Any] = run.bus.client_config()
    assert "nothing" not in AdminClient(config).list_topics(timeout=120).topics


def test_the_topic_of_a_pipeline() -> None:
    assert default_topic("table") == "table.dead-letters"
