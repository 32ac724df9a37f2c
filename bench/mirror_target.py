"""The source and the target of a measured mirror: brokers started, topics filled and compared."""

import hashlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from bench.errors import BenchError
from headrace.kafka.cluster import running_cluster
from headrace.kafka.jvm import BENCH_JVM
from headrace.mirror.content import content_of
from headrace.testing import broker_process

PARTITIONS = 3
VALUE_BYTES = 100
GROUP = "bench-group"
TARGETS = {"kafka3": 3, "kafka1": 1, "embedded": 0}  # how many nodes of Kafka
_CHUNK = 5000
_WAIT_S = 60.0


@contextmanager
def target(kind: str, directory: Path) -> Iterator[str]:
    """Run what is copied to; yields its bootstrap string."""
    with ExitStack() as stack:
        if nodes := TARGETS[kind]:
            cluster = stack.enter_context(
                running_cluster(directory, brokers=nodes, jvm_flags=BENCH_JVM)
            )
            yield cluster.bootstrap
        else:
            yield stack.enter_context(broker_process(directory)).bootstrap


def create_topics(bootstrap: str, names: list[str]) -> None:
    """Topics of three partitions and the broker's own replication."""
    admin = _admin(bootstrap)
    from confluent_kafka.cimpl import NewTopic

    topics: list[Any] = [NewTopic(name, PARTITIONS, -1) for name in names]
    for future in admin.create_topics(topics).values():
        future.result(_WAIT_S)
    for name in names:
        while len(admin.list_topics(name, timeout=_WAIT_S).topics[name].partitions) < PARTITIONS:
            pass


def delete_topics(bootstrap: str, names: list[str]) -> None:
    """And wait until they are gone."""
    admin = _admin(bootstrap)
    there = [name for name in names if name in admin.list_topics(timeout=_WAIT_S).topics]
    for future in (admin.delete_topics(there) if there else {}).values():
        future.result(_WAIT_S)
    while set(there) & admin.list_topics(timeout=_WAIT_S).topics.keys():
        pass


def fill(bootstrap: str, names: list[str], messages: int) -> None:
    """`messages` over all topics, and a group in the middle of each partition."""
    from confluent_kafka import Consumer, Producer, TopicPartition

    create_topics(bootstrap, names)
    producer: Any = Producer(
        {**_quiet(bootstrap), "linger.ms": 20, "queue.buffering.max.messages": 500_000}
    )
    for index, name in enumerate(names):
        each = messages // len(names) + (index < messages % len(names))
        producer.list_topics(name, timeout=_WAIT_S)
        for partition in range(PARTITIONS):
            share = each // PARTITIONS + (partition < each % PARTITIONS)
            for first in range(0, share, _CHUNK):
                rows = [
                    {"key": b"%d" % (at % 1000), "value": b"%0*d" % (VALUE_BYTES, at)}
                    for at in range(first, min(first + _CHUNK, share))
                ]
                while len(producer) > 400_000:
                    producer.poll(0.05)
                producer.produce_batch(name, rows, partition)
                producer.poll(0)
    if producer.flush(_WAIT_S * 5):
        raise BenchError("the source did not take the messages to copy")
    consumer = Consumer({**_quiet(bootstrap), "group.id": GROUP})
    positions = [
        TopicPartition(name, number, messages // len(names) // PARTITIONS // 2 + number)
        for name in names
        for number in range(PARTITIONS)
    ]
    consumer.commit(offsets=positions, asynchronous=False)
    consumer.close()


def digests(bootstrap: str, names: list[str]) -> dict[tuple[str, int], tuple[int, str]]:
    """Of each partition the count and a digest over offset and content of every record."""
    from confluent_kafka import Consumer, TopicPartition

    consumer: Any = Consumer(
        {**_quiet(bootstrap), "group.id": "bench-digest", "enable.partition.eof": True}
    )
    places = [(name, number) for name in names for number in range(PARTITIONS)]
    sums = {place: hashlib.blake2b() for place in places}
    counts = dict.fromkeys(places, 0)
    consumer.assign([TopicPartition(*place, 0) for place in places])
    pending = set(places)
    while pending:
        for message in consumer.consume(_CHUNK, 0.2):
            place = message.topic(), message.partition()
            if (error := message.error()) is not None:
                if error.code() == error._PARTITION_EOF:
                    pending.discard(place)
                continue
            counts[place] += 1
            pieces = b"".join(content_of(message))
            sums[place].update(b"%d:%d:" % (message.offset(), len(pieces)) + pieces)
    consumer.close()
    return {place: (counts[place], sums[place].hexdigest()) for place in places}


def next_of_group(bootstrap: str, names: list[str]) -> dict[tuple[str, int], tuple[int, bytes]]:
    """The message the group reads next in each partition: its offset and value."""
    from confluent_kafka import Consumer, TopicPartition

    consumer: Any = Consumer({**_quiet(bootstrap), "group.id": GROUP, "enable.auto.commit": False})
    places = [(name, number) for name in names for number in range(PARTITIONS)]
    found = dict[tuple[str, int], tuple[int, bytes]]()
    committed = consumer.committed([TopicPartition(*place) for place in places], _WAIT_S)
    for place in committed:
        consumer.assign([place])
        message = consumer.poll(_WAIT_S)
        if message is None or message.error():
            raise BenchError(f"group {GROUP} has nothing to read in {place.topic}")
        found[place.topic, place.partition] = message.offset(), message.value()
    consumer.close()
    return found


def arrived(bootstrap: str, names: list[str]) -> int:
    """Records in the topics of this name; 0 while there are none."""
    from confluent_kafka import Consumer, KafkaException, TopicPartition

    consumer = Consumer({**_quiet(bootstrap), "group.id": "bench-watch"})
    try:
        there = consumer.list_topics(timeout=_WAIT_S).topics
        ends = [
            consumer.get_watermark_offsets(TopicPartition(name, number), timeout=_WAIT_S)
            for name in names
            if name in there
            for number in there[name].partitions
        ]
    except KafkaException:
        return 0
    finally:
        consumer.close()
    return sum(end[1] for end in ends if end)


def _admin(bootstrap: str) -> Any:
    from confluent_kafka import admin as _module

    kafka: Any = _module
    return kafka.AdminClient(_quiet(bootstrap))


def _quiet(bootstrap: str) -> dict[str, Any]:
    return {"bootstrap.servers": bootstrap, "log_level": 0}
