"""Between Apache Kafka and the embedded broker: what only Kafka has, and both ways over."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition as Place
from tests.hardship.conftest import wait_until
from tests.mirror.conftest import Bus, Mirroring, during, has_caught_up, make_anew, numbers

from headrace.kafka.node import KafkaNode
from headrace.mirror.errors import MirrorIdentityError, MirrorRefusedError
from headrace.testing import RunningBroker

pytestmark = [pytest.mark.java, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bus]:
    settings = {"log.cleaner.backoff.ms": "100", "log.initial.task.delay.ms": "100"}
    with KafkaNode(tmp_path_factory.mktemp("kafka"), settings=settings) as node:
        yield Bus(node.bootstrap)


@pytest.fixture
def to_kafka(source_broker: RunningBroker, kafka: Bus, tmp_path: Path) -> Mirroring:
    return Mirroring(Bus(source_broker.bootstrap), kafka, tmp_path)


@pytest.fixture
def from_kafka(target_broker: RunningBroker, kafka: Bus, tmp_path: Path) -> Mirroring:
    return Mirroring(kafka, Bus(target_broker.bootstrap), tmp_path)


def positions_after(mirroring: Mirroring, topic: str, offsets: list[int]) -> dict[int, int]:
    """Mirror with a group at each of these source offsets; where they stand then."""
    for offset in offsets:
        mirroring.source.commit(f"{topic}-{offset}", {(topic, 0): offset})
    mirroring.run(topics=topic, groups=f"{topic}.*")
    return {offset: mirroring.target.committed(f"{topic}-{offset}", topic)[0] for offset in offsets}


def visible_before(bus: Bus, topic: str, offsets: list[int]) -> dict[int, int]:
    records = bus.records(topic)
    return {offset: sum(each.offset < offset for each in records) for offset in offsets}


def contents(bus: Bus, topic: str) -> list[tuple[Any, ...]]:
    """Messages without their offsets."""
    return [(each.partition, *each[2:]) for each in bus.records(topic)]


def test_from_embedded_to_kafka(to_kafka: Mirroring, topic: str) -> None:
    source, target = to_kafka.source, to_kafka.target
    configs = {"message.timestamp.type": "LogAppendTime", "min.insync.replicas": "2"}
    source.create(topic, partitions=2, configs=configs)
    source.numbers(topic, 2000, partitions=2)
    source.send(topic, [(1, None, None, None, [("a", None), ("a", b"")]), (0, b"", b"")])
    source.commit(topic, {(topic, 0): 77, (topic, 1): 1001})

    summary = to_kafka.run(topics=topic, groups=topic)

    assert target.records(topic) == source.records(topic)
    assert summary.topics[0].verified == "checksums"
    assert target.configs(topic) == {"message.timestamp.type": "LogAppendTime"}
    assert any("min.insync.replicas is not carried over" in note for note in to_kafka.told.notes)
    assert target.committed(topic, topic) == {0: 77, 1: 1001}


def test_gaps_of_transactions_are_counted_over(from_kafka: Mirroring, topic: str) -> None:
    kafka = from_kafka.source
    kafka.create(topic)
    producer = kafka.producer(transactional_id=topic)
    producer.init_transactions(30)
    for number in range(6):
        producer.begin_transaction()
        for index in range(10):
            producer.produce(topic, b"%d-%d" % (number, index), partition=0)
        if number % 2:
            producer.flush(120)
            producer.abort_transaction(30)
        else:
            producer.commit_transaction(30)
    offsets = [0, 10, 11, 15, 25, 40, 66]

    found = positions_after(from_kafka, topic, offsets)

    assert found == visible_before(kafka, topic, offsets)
    assert contents(from_kafka.target, topic) == contents(kafka, topic)
    arrived = from_kafka.target.records(topic)
    assert [each.offset for each in arrived] == list(range(30))
    assert from_kafka.run(topics=topic).topics[0].messages == 0


def test_gaps_of_compaction_are_counted_over(from_kafka: Mirroring, topic: str) -> None:
    kafka = from_kafka.source
    configs = {
        "cleanup.policy": "compact",
        "segment.ms": "100",
        "min.cleanable.dirty.ratio": "0.001",
        "max.compaction.lag.ms": "100",
    }
    kafka.create(topic, configs=configs)

    def is_compacted() -> bool:
        # The active segment is never cleaned: it takes a message to close it.
        kafka.send(topic, [(0, b"last", b"x")])
        return len(kafka.records(topic)) < 60

    kafka.send(topic, [(0, b"k%d" % (number % 40), b"%d" % number) for number in range(100)])
    wait_until(is_compacted, "compaction", 120)
    end = max(each.offset for each in kafka.records(topic)) + 1
    offsets = [0, 30, 70, 77, 99, 100, end]

    found = positions_after(from_kafka, topic, offsets)

    assert contents(from_kafka.target, topic) == contents(kafka, topic)
    assert found == visible_before(kafka, topic, offsets)
    assert from_kafka.target.configs(topic) == configs


def test_what_kafka_removed_at_the_start_is_no_loss(from_kafka: Mirroring, topic: str) -> None:
    kafka = from_kafka.source
    kafka.create(topic)
    kafka.numbers(topic, 50)
    (future,) = kafka.admin.delete_records([Place(topic, 0, 20)]).values()
    future.result(120)

    found = positions_after(from_kafka, topic, [3, 20, 31])

    assert found == {3: 0, 20: 0, 31: 11}
    assert contents(from_kafka.target, topic) == contents(kafka, topic)


def test_a_topic_made_anew_at_kafka_is_not_gone_on_with(from_kafka: Mirroring, topic: str) -> None:
    source, target = from_kafka.source, from_kafka.target
    source.create(topic)
    source.numbers(topic, 10)
    source.commit(topic, {(topic, 0): 9})
    during(from_kafka, (has_caught_up(from_kafka, topic), lambda: make_anew(source, topic, 25)))

    with pytest.raises(MirrorIdentityError, match="deleted at the source and made anew"):
        from_kafka.run(topics=topic, groups=topic, is_following=True, interval_s=0.1)

    assert numbers(target, topic) == list(range(10))
    with pytest.raises(MirrorIdentityError, match="deleted at the source and made anew"):
        from_kafka.run(topics=topic, groups=topic)
    target.delete(topic)
    from_kafka.run(topics=topic, groups=topic, is_anew=True)
    assert target.records(topic) == source.records(topic)
    assert target.committed(topic, topic) == source.committed(topic, topic)


def test_a_copy_made_anew_at_kafka_is_not_written_on(to_kafka: Mirroring, topic: str) -> None:
    source, target = to_kafka.source, to_kafka.target
    source.create(topic)
    source.numbers(topic, 10)

    def replace() -> None:
        make_anew(target, topic, 10)
        source.numbers(topic, 5, first=10)

    during(to_kafka, (has_caught_up(to_kafka, topic), replace))
    with pytest.raises(MirrorIdentityError, match="deleted at the target and made anew"):
        to_kafka.run(topics=topic, groups=None, is_following=True, interval_s=0.1)

    source.commit(topic, {(topic, 0): 7})
    target.commit(topic, {(topic, 0): 10})
    target.delete(topic)
    to_kafka.run(topics=topic, groups=topic, is_anew=True)
    assert target.records(topic) == source.records(topic)
    assert target.committed(topic, topic) == {0: 7}, "the old topic's position went with it"


@pytest.mark.slow
def test_from_kafka_to_kafka(kafka: Bus, topic: str, tmp_path: Path) -> None:
    kafka.create(topic, partitions=2, configs={"cleanup.policy": "compact"})
    kafka.numbers(topic, 500, partitions=2)
    kafka.commit(topic, {(topic, 0): 100})
    with KafkaNode(tmp_path / "other") as node:
        mirroring = Mirroring(kafka, Bus(node.bootstrap), tmp_path)
        mirroring.run(topics=topic, groups=topic)

        assert mirroring.target.records(topic) == kafka.records(topic)
        assert mirroring.target.configs(topic) == {"cleanup.policy": "compact"}
        assert mirroring.target.committed(topic, topic) == {0: 100}
        with pytest.raises(MirrorRefusedError, match="loop"):
            mirroring.back().run(topics=topic)
