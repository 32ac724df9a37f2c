"""What pipelines and SQL see of transactions, on a real Apache Kafka."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from tests.pipelines.running.stage import PATIENCE_S, a_topic

from headrace.client.bus import Bus
from headrace.kafka.node import KafkaNode
from headrace.pipelines.definition import Run
from headrace.pipelines.errors import SourceError
from headrace.pipelines.source import TopicSource
from headrace.pipelines.sql_query.query import TopicQuery
from headrace.pipelines.topic_positions import TopicPositions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.java]

_OFFSET = {"committed": 0, "aborted": 4, "open": 8}  # three records each, and a marker behind two


@pytest.fixture(scope="module")
def bus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bus]:
    with KafkaNode(tmp_path_factory.mktemp("node")) as node:
        yield Bus(node.bootstrap)


@pytest.fixture(scope="module")
def topic(bus: Bus) -> Iterator[str]:
    """Three records that were committed, three that were aborted, three that may yet be either."""
    from confluent_kafka import Producer

    topic = a_topic(bus, partitions=1)
    producers = list[Producer]()
    for end in _OFFSET:
        producer = Producer(bus.client_config({"transactional.id": f"{topic}-{end}"}))
        producer.init_transactions(PATIENCE_S)
        producer.begin_transaction()
        for number in range(3):
            producer.produce(topic, f"{end} {number}".encode())
        assert producer.flush(PATIENCE_S) == 0
        producers.append(producer)
        if end == "committed":
            producer.commit_transaction(PATIENCE_S)
        elif end == "aborted":
            producer.abort_transaction(PATIENCE_S)
    yield topic
    producers[-1].abort_transaction(PATIENCE_S)


def _dirty(bus: Bus) -> Bus:
    return Bus(bus.bootstrap, {"isolation.level": "read_uncommitted"})


def test_a_topic_ends_where_its_first_open_transaction_begins(bus: Bus, topic: str) -> None:
    partition = (topic, 0)

    assert TopicPositions(bus).ends([partition]) == {partition: _OFFSET["open"]}
    assert TopicPositions(_dirty(bus)).ends([partition]) == {partition: 11}
    with pytest.raises(SourceError, match=r"isolation\.level=dirty: write read_committed or"):
        TopicPositions(Bus(bus.bootstrap, {"isolation.level": "dirty"}))


def test_a_source_reads_what_was_committed_unless_told_otherwise(
    spark: "SparkSession", bus: Bus, topic: str
) -> None:
    def values(bus: Bus) -> list[str]:
        run = Run(spark=spark, bus=bus, name="r", app_id="a")
        batch = TopicSource(topics=(topic,)).batch(run)
        found = list[bytes]()
        stream = TopicSource(topics=(topic,)).stream(run)
        query = (
            stream.writeStream.foreachBatch(
                lambda rows, _: found.extend(row.value for row in rows.collect())
            )
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(PATIENCE_S)
        assert found == [row.value for row in batch.orderBy("offset").collect()]
        return [bytes(each).decode().split()[0] for each in found]

    assert values(bus) == ["committed"] * 3
    assert values(_dirty(bus)) == ["committed"] * 3 + ["aborted"] * 3 + ["open"] * 3


def test_sql_reads_what_was_committed_unless_told_otherwise(
    spark: "SparkSession", bus: Bus, topic: str
) -> None:
    def count(bus: Bus) -> int:
        query = TopicQuery(spark, bus)
        return int(query.answer(f"select count(*) from `{topic}`").frame.collect()[0][0])

    assert count(bus) == 3
    assert count(_dirty(bus)) == 9
