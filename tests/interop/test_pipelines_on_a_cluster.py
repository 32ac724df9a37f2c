"""The shipped pipelines on three nodes of Apache Kafka, each of which is killed once meanwhile.

The pipelines are started as on any other engine. What they leave behind must equal the log, record
by record, and what they leave behind on the embedded broker when it holds the same log.
"""

import contextlib
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from tests.hardship.conftest import wait_until
from tests.hardship.pipelines.drivers import Driver
from tests.hardship.pipelines.feed import (
    PARTITIONS,
    SCHEMA,
    TOPIC,
    Feed,
    Record,
    bad_places,
    create_topic,
    expected_table,
    read_log,
)
from tests.hardship.pipelines.results import rows_in_lake, rows_in_table

from headrace.kafka.cluster import Cluster, running_cluster
from headrace.kafka.node import Node
from headrace.testing import running_broker

pytestmark = [
    pytest.mark.spark,
    pytest.mark.java,
    pytest.mark.slow,
    pytest.mark.timeout(1800),
]

NODES = 3
# Kafka's own nine seconds until a dead node is noticed would prove nothing more.
SETTINGS = {"broker.session.timeout.ms": "2000", "broker.heartbeat.interval.ms": "250"}
_PATIENCE_SECONDS = 240.0
_BURST = 20  # some 200 messages a second: three nodes and Spark share the machine
_REPLAYED = 300_000  # so many that a replay is still at it when the node dies


class Place(NamedTuple):
    """Where a pipeline reads, and where it puts things."""

    bootstrap: str
    topic: str
    directory: Path

    @property
    def lake(self) -> Path:
        return self.directory / "lake"

    @property
    def database(self) -> Path:
        return self.directory / "readings.db"

    @property
    def output(self) -> str:
        return f"{self.topic}-transformed"


class Job(NamedTuple):
    """A pipeline, what it leaves behind, and what the log says that must be."""

    pipeline: str
    arguments: Callable[[Place], Sequence[str]]
    result: Callable[[Place], object]
    truth: Callable[[list[Record]], object]


def archive_arguments(place: Place) -> Sequence[str]:
    return "--to", f"parquet:{place.lake}"


def archived(place: Place) -> object:
    return rows_in_lake(place.lake)


def all_of_it(records: list[Record]) -> object:
    return [tuple(record) for record in records]


def table_arguments(place: Place) -> Sequence[str]:
    options = ("--option", f"schema={SCHEMA}", "--option", "key=sensor", "--option")
    return "--to", f"sqlite:{place.database}", *options, "table=readings"


def tabled(place: Place) -> object:
    return rows_in_table(place.database)


def transform_arguments(place: Place) -> Sequence[str]:
    options = ("--option", f"schema={SCHEMA}", "--option", "create=4", "--option")
    return "--to", f"topic:{place.output}", *options, "select=sensor, reading * 2 as twice"


def transformed(place: Place) -> object:
    """Time, key and value of each; -1 stands for a deletion, which has to be sorted too."""
    records = read_log(place.bootstrap, place.output)
    return sorted(
        (r.timestamp_ms, r.key, -1 if r.value is None else json.loads(r.value)["twice"])
        for r in records
    )


def doubled(records: list[Record]) -> object:
    bad = bad_places(records)
    return sorted(
        (r.timestamp_ms, r.key, -1 if r.value is None else json.loads(r.value)["reading"] * 2)
        for r in records
        if (r.partition, r.offset) not in bad
    )


JOBS = [
    Job("archive", archive_arguments, archived, all_of_it),
    Job("table", table_arguments, tabled, expected_table),
    Job("transform", transform_arguments, transformed, doubled),
]


def driver_of(job: Job, place: Place) -> Driver:
    common = ("--topic", place.topic, "--max-rows", "2000")
    arguments = (*common, *job.arguments(place))
    return Driver(job.pipeline, place.directory, place.bootstrap, arguments)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    directory = tmp_path_factory.mktemp("cluster") / "kafka"
    with running_cluster(directory, brokers=NODES, settings=SETTINGS) as cluster:
        yield cluster


def leader_of(cluster: Cluster, topic: str) -> int:
    """The node that leads the topic's first partition."""
    known = AdminClient({"bootstrap.servers": cluster.bootstrap}).list_topics(topic, 60)
    return int(known.topics[topic].partitions[0].leader)


def leader_first(cluster: Cluster) -> Iterator[Node]:
    """Each node once; as far as that goes, one that leads at the moment it is asked for."""
    left = {node.id for node in cluster.nodes}
    while left:
        leader = leader_of(cluster, TOPIC)
        chosen = leader if leader in left else min(left)
        left.discard(chosen)
        yield cluster.node(chosen)


def are_copies_in_sync(cluster: Cluster) -> bool:
    known = AdminClient({"bootstrap.servers": cluster.bootstrap}).list_topics(TOPIC, 60)
    return all(len(each.isrs) == NODES for each in known.topics[TOPIC].partitions.values())


def copy_to(bootstrap: str, records: list[Record]) -> None:
    """The same log elsewhere: partitions, offsets and times are the same."""
    create_topic(bootstrap, TOPIC)
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for number, each in enumerate(records):
        producer.produce(
            TOPIC, each.value, each.key, partition=each.partition, timestamp=each.timestamp_ms
        )
        if number % 10_000 == 0:
            producer.flush()
    assert producer.flush(_PATIENCE_SECONDS) == 0
    assert read_log(bootstrap) == records


def place_in(directory: Path, bootstrap: str, topic: str) -> Place:
    directory.mkdir()
    return Place(bootstrap, topic, directory)


def test_killed_nodes_change_nothing(cluster: Cluster, tmp_path: Path) -> None:
    create_topic(cluster.bootstrap, TOPIC)
    place = place_in(tmp_path / "cluster", cluster.bootstrap, TOPIC)
    with contextlib.ExitStack() as stack:
        drivers = [stack.enter_context(contextlib.closing(driver_of(j, place))) for j in JOBS]
        with Feed(cluster.bootstrap, seed=7, burst=_BURST):
            for driver in drivers:
                driver.start()
            for victim in leader_first(cluster):
                for driver in drivers:
                    driver.advance(1)
                victim.kill()
                for driver in drivers:
                    driver.advance(2)
                victim.start()
                wait_until(lambda: are_copies_in_sync(cluster), "all copies", _PATIENCE_SECONDS)
            for driver in drivers:
                driver.advance(1)  # while there is something to advance over
        for driver in drivers:
            assert driver.stop() == 0, driver.told()
            driver.finish()

    records = read_log(cluster.bootstrap)
    assert bad_places(records)  # the feed did write some
    for job in JOBS:
        assert job.result(place) == job.truth(records), job.pipeline
    with running_broker(in_memory=False) as embedded:
        copy_to(embedded.bootstrap, records)
        other = place_in(tmp_path / "embedded", embedded.bootstrap, TOPIC)
        for job in JOBS:
            driver_of(job, other).finish()
            assert job.result(other) == job.result(place), job.pipeline


def test_a_node_killed_under_a_replay_loses_and_repeats_nothing(
    cluster: Cluster, tmp_path: Path
) -> None:
    topic, copy = "readings-kept", "readings-replayed"
    write_many(cluster.bootstrap, topic)
    create_topic(cluster.bootstrap, copy)
    place = place_in(tmp_path / "cluster", cluster.bootstrap, topic)
    driver_of(JOBS[0], place).finish()
    arguments = ("--option", f"from={place.lake}", "--to", f"topic:{copy}")
    with contextlib.closing(
        Driver("replay", place.directory, cluster.bootstrap, arguments)
    ) as replay:
        replay.start()
        wait_until(lambda: length(cluster, copy) > 0, "a start of the replay", _PATIENCE_SECONDS)
        victim = cluster.node(leader_of(cluster, copy))
        # Asked before: librdkafka asks a dead leader for its offsets until the time is up.
        length_then = length(cluster, copy)
        victim.kill()
        replay.join()
        victim.start()

    assert 0 < length_then < _REPLAYED
    records = read_log(cluster.bootstrap, topic)
    assert len(records) == _REPLAYED
    assert read_log(cluster.bootstrap, copy) == records


def write_many(bootstrap: str, topic: str) -> None:
    create_topic(bootstrap, topic)
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for number in range(_REPLAYED):
        producer.produce(topic, b"%d" % number, b"%d" % (number % 100))
        if number % 10_000 == 0:
            producer.flush()
    assert producer.flush(_PATIENCE_SECONDS) == 0


def length(cluster: Cluster, topic: str) -> int:
    """How many records the topic holds."""
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "length"})
    try:
        ends = [
            consumer.get_watermark_offsets(TopicPartition(topic, number), _PATIENCE_SECONDS)
            for number in range(PARTITIONS)
        ]
    finally:
        consumer.close()
    return sum(high for _, high in ends)
