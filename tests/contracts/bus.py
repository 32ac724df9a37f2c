"""A bus as the contract tests see it: Kafka clients on some engine, and the words they share.

Tests never ask which engine it is. Where engines differ, `differences` says so by name.
"""

import itertools
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewTopic
from tests.contracts.engines import Engine

# A wait that takes this long has failed; no test is slower for it.
PATIENCE_S = 180.0
_POLL_S = 0.02
_READ_AT_ONCE = 500

# librdkafka waits between its attempts; a test has no reason to.
_IMPATIENT = {
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 200,
    "retry.backoff.ms": 20,
    "log_level": 0,
}
# A broker's answers about partitions that it has not taken up yet.
_NOT_YET = {
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError._UNKNOWN_PARTITION,
    KafkaError._UNKNOWN_TOPIC,
}
_Found = TypeVar("_Found")


class Bus:
    """One engine and clients for it."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.patience_s = PATIENCE_S  # less in a test that must fail: it would wait in vain
        self.admin = AdminClient(self._config({}))
        self._asker = self.open_consumer()

    def close(self) -> None:
        """Let go of its own clients; the engine goes on."""
        self._asker.close()

    @property
    def bootstrap(self) -> str:
        return self.engine.bootstrap

    def kill_and_restart(self) -> None:
        """kill -9, and start again on the same data."""
        self.engine.kill()
        self.engine.start()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """The bus stalls for the time of the block: requests arrive and are not answered."""
        self.engine.pause()
        try:
            yield
        finally:
            self.engine.resume()

    # Topics

    def new_topic(self, partitions: int = 1, name: str | None = None, **configs: object) -> str:
        """Create a topic nobody else uses: `new_topic(3, retention_ms=1000)`."""
        name = name or f"topic-{uuid.uuid4()}"
        config = {key.replace("_", "."): str(value) for key, value in configs.items()}
        self.done(self.admin.create_topics([NewTopic(name, partitions, config=config)]))
        self.wait_until_served(name, partitions)
        return name

    def wait_until_served(self, topic: str, partitions: int) -> None:
        """Kafka's controller answers before its brokers have heard of new partitions."""
        wait_for(lambda: self.partitions_of(topic) == partitions and self.offsets_of(topic))

    def done(self, futures: dict[Any, Any]) -> list[Any]:
        """What the admin client's futures hold."""
        return [future.result(PATIENCE_S) for future in futures.values()]

    def partitions_of(self, topic: str) -> int:
        """How many partitions the bus says a topic has; 0 where there is no such topic."""
        found = self.admin.list_topics(timeout=PATIENCE_S).topics.get(topic)
        return len(found.partitions) if found else 0

    def topic_id(self, topic: str) -> str:
        """The id of a topic; KafkaException where there is no such topic."""
        futures = self.admin.describe_topics(TopicCollection([topic]))
        return str(self.done(futures)[0].topic_id)

    def delete_topic(self, topic: str) -> None:
        """Delete a topic, and wait until nobody lists it any more."""
        self.done(self.admin.delete_topics([topic]))
        wait_for(lambda: not self.partitions_of(topic))

    def offsets(self, topic: str, partition: int = 0) -> tuple[int, int]:
        """The oldest offset of a partition and the one behind the last."""
        return wait_for(lambda: self._asked(TopicPartition(topic, partition)))

    def offsets_of(self, topic: str) -> list[tuple[int, int]]:
        """The same of every partition."""
        return [self.offsets(topic, number) for number in range(self.partitions_of(topic))]

    def _asked(self, place: TopicPartition) -> tuple[int, int] | None:
        """None while a broker that has just started does not know yet what it leads."""
        try:
            oldest, latest = self._asker.get_watermark_offsets(place, timeout=PATIENCE_S)
        except KafkaException as error:
            if error.args[0].code() not in _NOT_YET:
                raise
            # librdkafka would go on asking whom it remembers as the leader.
            self._asker.list_topics(place.topic, timeout=PATIENCE_S)
            return None
        return oldest, latest

    # Writing

    def producer(self, **config: object) -> Producer:
        """A producer: `producer(linger_ms=5)`."""
        return Producer(self._config(config))

    def send(
        self, topic: str, values: Iterable[bytes | str | None], **producing: Any
    ) -> list[Message]:
        """Write values and return what was acknowledged; KafkaException where one was not.

        `config` is the producer's; the rest goes with every message: `send(t, [b"a"], key=b"k")`.
        """
        producer = self.producer(**producing.pop("config", {}))
        sent = Deliveries()
        for value in values:
            producer.produce(topic, value, on_delivery=sent, **producing)
            producer.poll(0)
        assert producer.flush(PATIENCE_S) == 0
        return sent.acknowledged()

    # Reading

    @contextmanager
    def consumer(self, group: str | None = None, **config: object) -> Iterator[Consumer]:
        """A consumer that is closed at the end; one without a group commits nothing."""
        consumer = self.open_consumer(group, **config)
        try:
            yield consumer
        finally:
            consumer.close()

    def open_consumer(self, group: str | None = None, **config: object) -> Consumer:
        """The same, for whoever closes it himself."""
        defaults = {
            "group.id": group or f"reader-{uuid.uuid4()}",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": 6000,
            "heartbeat.interval.ms": 200,
            "fetch.wait.max.ms": 50,
            "fetch.error.backoff.ms": 20,
            "fetch.queue.backoff.ms": 20,
        }
        if str(config.get("group_protocol")) == "consumer":
            # There the bus decides them.
            del defaults["session.timeout.ms"], defaults["heartbeat.interval.ms"]
        return Consumer({**defaults, **self._config(config)})

    def read(self, topic: str, partition: int | None = None) -> list[Message]:
        """All that is in a topic, or in one partition of it, from the oldest to the end of now."""
        wanted = {
            number
            for number, (oldest, latest) in enumerate(self.offsets_of(topic))
            if oldest < latest and partition in (None, number)
        }
        messages: list[Message] = []
        with self.consumer(enable_partition_eof=True) as consumer:
            consumer.assign([TopicPartition(topic, n, OFFSET_BEGINNING) for n in wanted])
            deadline = time.monotonic() + PATIENCE_S
            while wanted:
                for message in consumer.consume(_READ_AT_ONCE, timeout=0.2):
                    if message.error() is None:
                        messages.append(message)
                    elif message.error().code() == KafkaError._PARTITION_EOF:
                        wanted.discard(message.partition())
                    else:
                        raise KafkaException(message.error())
                assert time.monotonic() < deadline, f"{topic} could not be read: {wanted}"
        return messages

    def _config(self, config: dict[str, Any]) -> dict[str, Any]:
        named = {
            name if name.endswith("_cb") else name.replace("_", "."): value
            for name, value in config.items()
        }
        return {**_IMPATIENT, "bootstrap.servers": self.bootstrap, **named}


class Deliveries:
    """What became of a producer's messages, in the order it was told."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.errors: list[KafkaError] = []

    def __call__(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self.messages.append(message)
        else:
            self.errors.append(error)

    def acknowledged(self) -> list[Message]:
        """All of them; KafkaException where one failed."""
        if self.errors:
            raise KafkaException(self.errors[0])
        return self.messages


def wait_for(find: Callable[[], _Found], timeout_s: float = PATIENCE_S) -> _Found:
    """Ask until the answer is true, and return it."""
    deadline = time.monotonic() + timeout_s
    while not (found := find()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(_POLL_S)
    return found


def poll(consumer: Consumer, count: int) -> list[Message]:
    """The consumer's next messages, as many as that."""
    return poll_each([consumer], count)[0]


def poll_each(consumers: Sequence[Consumer], count: int) -> list[list[Message]]:
    """What each of the consumers gets until they have so many together."""
    got: list[list[Message]] = [[] for _ in consumers]
    deadline = time.monotonic() + PATIENCE_S
    for messages, consumer in itertools.cycle(zip(got, consumers, strict=True)):
        missing = count - sum(map(len, got))
        if missing <= 0:
            break
        for message in consumer.consume(missing, timeout=0.05):
            if message.error() is None:
                messages.append(message)
            elif not _is_passing(message.error()):
                raise KafkaException(message.error())
        assert time.monotonic() < deadline, f"{missing} of {count} messages did not come"
    return got


def _is_passing(error: KafkaError) -> bool:
    """The end of a partition; or a topic that is gone, of which the group learns a moment later."""
    passing = (KafkaError._PARTITION_EOF, KafkaError.UNKNOWN_TOPIC_OR_PART)
    return error.retriable() or error.code() in passing


def assigned(consumers: Sequence[Consumer], *shares: int) -> list[list[TopicPartition]]:
    """Poll until the consumers hold so many partitions each, in any order; return who holds which.

    Nothing may lie in the topics yet: what comes would be lost to the test.
    """

    def held() -> list[list[TopicPartition]] | None:
        for consumer in consumers:
            assert consumer.poll(0.02) is None
        found = [consumer.assignment() for consumer in consumers]
        return found if sorted(map(len, found)) == sorted(shares) else None

    return wait_for(held)


def wait_for_end(consumer: Consumer) -> None:
    """Poll until the consumer stands behind the last message; it needs `enable_partition_eof`."""
    end = wait_for(lambda: consumer.poll(_POLL_S))
    assert end.error().code() == KafkaError._PARTITION_EOF, end.value()


def values(messages: Iterable[Message]) -> list[bytes | None]:
    """Their values, in order."""
    return [message.value() for message in messages]


def numbered(count: int, prefix: str = "") -> list[bytes]:
    """Values to tell apart: b"0", b"1", …"""
    return [f"{prefix}{number}".encode() for number in range(count)]
