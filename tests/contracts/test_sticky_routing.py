"""Sticky routing: messages with one key lie in one partition, whoever sends them and when.

Which partition is the client's choice, on every engine: Java's clients take murmur2 of the key,
librdkafka a CRC unless it is told `partitioner=murmur2_random`.
"""

import asyncio
import warnings

from aiokafka import AIOKafkaProducer
from confluent_kafka.admin import NewPartitions
from tests.contracts.bus import Bus, numbered

with warnings.catch_warnings():
    # Its import reads schemas through a function of importlib that Python 3.11 deprecates.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaProducer

PARTITIONS = 6
KEYS = numbered(30, "key-")
MURMUR2 = {"partitioner": "murmur2_random"}


def places(bus: Bus, topic: str) -> dict[bytes, set[int]]:
    """In which partitions each key lies."""
    found: dict[bytes, set[int]] = {}
    for message in bus.read(topic):
        found.setdefault(message.key() or b"", set()).add(message.partition())
    return found


def send_keys(bus: Bus, topic: str, **config: object) -> None:
    producer = bus.producer(**config)
    for key in KEYS:
        producer.produce(topic, b"v", key=key)
    assert producer.flush(120) == 0


def test_a_key_keeps_its_partition_over_producers_and_restarts_of_them(bus: Bus) -> None:
    topic = bus.new_topic(PARTITIONS)
    for config in ({}, {"linger_ms": 20}, {"acks": 1}, {"enable_idempotence": True}):
        send_keys(bus, topic, **config)

    found = places(bus, topic)

    assert set(found) == set(KEYS)
    assert {len(numbers) for numbers in found.values()} == {1}
    assert len(set.union(*found.values())) == PARTITIONS  # and they are spread


def test_clients_that_use_javas_hash_agree_on_the_partition(bus: Bus) -> None:
    topic = bus.new_topic(PARTITIONS)
    send_keys(bus, topic, **MURMUR2)
    producer = KafkaProducer(bootstrap_servers=bus.bootstrap)
    for key in KEYS:
        producer.send(topic, b"v", key=key)
    producer.flush()
    producer.close()
    asyncio.run(_send_with_aiokafka(bus, topic))

    found = places(bus, topic)

    assert {len(numbers) for numbers in found.values()} == {1}
    assert sum(1 for _ in bus.read(topic)) == 3 * len(KEYS)


def test_new_partitions_change_the_way_of_keys_but_not_what_lies_there(bus: Bus) -> None:
    topic = bus.new_topic(2)
    send_keys(bus, topic)
    before = places(bus, topic)

    bus.done(bus.admin.create_partitions([NewPartitions(topic, PARTITIONS)]))
    bus.wait_until_served(topic, PARTITIONS)
    assert places(bus, topic) == before

    send_keys(bus, topic)
    assert len(set.union(*places(bus, topic).values())) == PARTITIONS


async def _send_with_aiokafka(bus: Bus, topic: str) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=bus.bootstrap)
    await producer.start()
    for key in KEYS:
        await producer.send(topic, b"v", key=key)
    await producer.stop()
