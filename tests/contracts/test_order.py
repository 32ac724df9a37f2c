"""Order: a partition, and so a key, keeps its producer's order, also when batches are retried."""

import threading

from confluent_kafka import KafkaError
from tests.contracts.bus import PATIENCE_S, Bus, Deliveries, numbered, poll, values, wait_for

KEYS = numbered(8, "key-")


def by_key(messages: list[tuple[bytes | None, bytes | None]]) -> dict[bytes, list[bytes]]:
    found: dict[bytes, list[bytes]] = {}
    for key, value in messages:
        found.setdefault(key or b"", []).append(value or b"")
    return found


def test_each_key_keeps_its_order_through_a_group(bus: Bus, group: str) -> None:
    topic = bus.new_topic(4)
    producer = bus.producer(linger_ms=1, batch_num_messages=7)
    for value in numbered(50):
        for key in KEYS:
            producer.produce(topic, value, key=key)
    assert producer.flush(PATIENCE_S) == 0

    with bus.consumer(group) as member:
        member.subscribe([topic])
        got = poll(member, 50 * len(KEYS))

    assert by_key([(each.key(), each.value()) for each in got]) == dict.fromkeys(KEYS, numbered(50))


def test_batches_in_flight_that_are_retried_keep_their_order(bus: Bus, topic: str) -> None:
    """Five requests are under way when the bus stalls; each is broken off and sent again."""
    failures: list[KafkaError] = []
    producer = bus.producer(
        enable_idempotence=True,
        max_in_flight=5,
        batch_num_messages=10,
        linger_ms=0,
        socket_timeout_ms=500,
        error_cb=failures.append,
    )
    deliveries = Deliveries()
    sent = numbered(200)
    for value in sent[:100]:
        producer.produce(topic, value, on_delivery=deliveries)
    wait_for(lambda: producer.poll(0) and deliveries.messages)
    with bus.paused():
        failures.clear()  # of a bus that was merely slow
        for value in sent[100:]:
            producer.produce(topic, value, on_delivery=deliveries)
        wait_for(lambda: producer.poll(0) or failures)
    assert producer.flush(PATIENCE_S) == 0

    assert [message.offset() for message in deliveries.acknowledged()] == list(range(200))
    assert values(bus.read(topic)) == sent


def test_two_producers_on_one_partition_keep_an_order_each(bus: Bus, topic: str) -> None:
    prefixes = ["a", "b"]
    threads = [
        threading.Thread(target=_send, args=(bus, topic, prefix), name=prefix)
        for prefix in prefixes
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    got = values(bus.read(topic))

    for prefix in prefixes:
        own = [value for value in got if value is not None and value.startswith(prefix.encode())]
        assert own == numbered(200, prefix)


def _send(bus: Bus, topic: str, prefix: str) -> None:
    bus.send(topic, numbered(200, prefix), config={"batch_num_messages": 20})
