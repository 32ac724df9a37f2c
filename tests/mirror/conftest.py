"""Two buses and what the tests put on them."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from headrace.client.bus import Bus as ClientBus
from headrace.client.error_table import is_passing
from headrace.mirror.endpoint import Endpoint
from headrace.mirror.interface import FOLLOWING, MirrorProgress, Options, Summary
from headrace.mirror.mirror import Mirror
from headrace.patience import Patience
from headrace.testing import RunningBroker, running_broker

QUIET = {"log_level": 0}


class Record(NamedTuple):
    """Everything of a message that has to arrive, with its place."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    headers: tuple[tuple[str, bytes | None], ...]


class Told:
    """A listener that remembers."""

    def __init__(self) -> None:
        self.notes = list[str]()
        self.phases = list[str]()
        self.on_progress: Callable[[MirrorProgress], None] = lambda _progress: None

    def note(self, sentence: str) -> None:
        self.notes.append(sentence)

    def progress(self, progress: MirrorProgress) -> None:
        if progress.phase not in self.phases:
            self.phases.append(progress.phase)
        self.on_progress(progress)


class Bus:
    """One bus, as its users see it."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.config: dict[str, Any] = {"bootstrap.servers": bootstrap, **QUIET}
        self.admin: Any = AdminClient(self.config)

    def create(
        self, topic: str, partitions: int = 1, configs: Mapping[str, str] | None = None
    ) -> None:
        new: Any = NewTopic(topic, partitions, 1, config=dict(configs or {}))
        self.admin.create_topics([new])[topic].result(120)
        self.producer().list_topics(topic, timeout=120)

    def producer(self, **more: Any) -> Producer:
        config = {name.replace("_", "."): value for name, value in more.items()}
        return Producer({**self.config, **config})

    def send(self, topic: str, messages: Iterable[tuple[Any, ...]]) -> None:
        """Each message is (partition, key, value, timestamp_ms, headers), the last two optional."""
        producer = self.producer()
        for partition, key, value, *rest in messages:
            timestamp_ms, headers = [*rest, *[None, None][len(rest) :]]
            producer.produce(
                topic,
                value,
                key,
                partition,
                **({} if timestamp_ms is None else {"timestamp": timestamp_ms}),
                **({} if headers is None else {"headers": headers}),
            )
        assert producer.flush(120) == 0

    def numbers(self, topic: str, count: int, first: int = 0, partitions: int = 1) -> None:
        """Messages whose values are numbers, in turn to each partition."""
        self.send(
            topic,
            [
                (number % partitions, b"k%d" % (number % 7), b"%d" % number, 1000 + number)
                for number in range(first, first + count)
            ],
        )

    def records(self, topic: str, *, isolation: str = "read_committed") -> list[Record]:
        """All messages of a topic, by partition and offset."""
        consumer = Consumer(
            {
                **self.config,
                "group.id": "test-reader",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "earliest",
                "isolation.level": isolation,
            }
        )
        try:
            metadata = consumer.list_topics(topic, timeout=120).topics[topic]
            pending = set(metadata.partitions)
            consumer.assign([Place(topic, number, 0) for number in pending])
            found = list[Record]()
            while pending:
                message = consumer.poll(120)
                assert message is not None
                if (error := message.error()) is not None:
                    assert error.code() == error._PARTITION_EOF, error
                    pending.discard(message.partition())
                    continue
                found.append(record_of(message))
            return sorted(found)
        finally:
            consumer.close()

    def commit(self, group: str, positions: Mapping[tuple[str, int], int], text: str = "") -> None:
        consumer = Consumer({**self.config, "group.id": group})
        places = [
            Place(*place, offset, text) if text else Place(*place, offset)
            for place, offset in positions.items()
        ]
        patience = Patience(120)
        while True:
            try:
                consumer.commit(offsets=places, asynchronous=False)
            except KafkaException as error:  # a coordinator that has just started
                if not is_passing(error.args[0]) or not patience.pause():
                    raise
            else:
                break
        consumer.close()

    def committed(self, group: str, topic: str) -> dict[int, int]:
        """Where a group stands in each partition it has a position in."""
        return {number: place.offset for number, place in self.places(group, topic).items()}

    def places(self, group: str, topic: str) -> dict[int, Any]:
        consumer = Consumer({**self.config, "group.id": group})
        try:
            partitions = consumer.list_topics(topic, timeout=120).topics[topic].partitions
            found = consumer.committed([Place(topic, number) for number in partitions], 30)
            return {place.partition: place for place in found if place.offset >= 0}
        finally:
            consumer.close()

    def configs(self, topic: str) -> dict[str, str]:
        """The configs set on a topic."""
        from confluent_kafka import admin as _admin

        kafka: Any = _admin
        resource = kafka.ConfigResource(kafka.ResourceType.TOPIC, topic)
        (future,) = self.admin.describe_configs([resource]).values()
        return {
            entry.name: entry.value
            for entry in future.result(120).values()
            if kafka.ConfigSource(entry.source).name == "DYNAMIC_TOPIC_CONFIG"
        }

    def delete(self, topic: str) -> None:
        self.admin.delete_topics([topic])[topic].result(120)


def record_of(message: Any) -> Record:
    return Record(
        message.partition(),
        message.offset(),
        message.key(),
        message.value(),
        message.timestamp()[1],
        tuple(message.headers() or ()),
    )


class Mirroring:
    """Runs mirrors between two buses, as often as wanted."""

    def __init__(self, source: Bus, target: Bus, state_dir: Path) -> None:
        self.source, self.target = source, target
        self.state_dir = state_dir
        self.told = Told()
        self.is_stopped = False
        self.properties: dict[str, str] = {}  # the operator's, for both

    def make(self, **options: Any) -> Mirror:
        for name in ("topics", "groups"):
            if isinstance(options.get(name), str):
                options[name] = re.compile(options[name])
        ends = [
            Endpoint(
                f"--{option} {bus.bootstrap}",
                ClientBus(bus.bootstrap, self.properties),
                timeout_s=120,
                listener=self.told,
                is_stopped=lambda: self.is_stopped,
            )
            for option, bus in (("from", self.source), ("to", self.target))
        ]
        return Mirror(ends[0], ends[1], Options(self.state_dir, **options), self.told)

    def run(self, **options: Any) -> Summary:
        return self.make(**options).run()

    def back(self) -> "Mirroring":
        return Mirroring(self.target, self.source, self.state_dir)


def make_anew(bus: Bus, topic: str, count: int, first: int = 1_000_000) -> None:
    bus.delete(topic)
    bus.create(topic)
    bus.numbers(topic, count, first)


def numbers(bus: Bus, topic: str) -> list[int]:
    return [int(each.value or b"") for each in bus.records(topic)]


def during(
    mirroring: Mirroring, *steps: tuple[Callable[[MirrorProgress], bool], Callable[[], None]]
) -> None:
    """Do these things one after the other, each when it is time for it."""
    pending = list(steps)

    def look(progress: MirrorProgress) -> None:
        if pending and pending[0][0](progress):
            pending.pop(0)[1]()

    mirroring.told.on_progress = look


def is_following(progress: MirrorProgress) -> bool:
    return progress.phase == FOLLOWING


def has_caught_up(mirroring: Mirroring, topic: str) -> Callable[[MirrorProgress], bool]:
    """Whether what was there at the start is copied, checked and noted."""
    return lambda progress: (
        is_following(progress) and "cleanup.policy" not in mirroring.target.configs(topic)
    )


@pytest.fixture(scope="module")
def source_broker() -> Iterator[RunningBroker]:
    with running_broker(in_memory=True) as broker:
        yield broker


@pytest.fixture(scope="module")
def target_broker() -> Iterator[RunningBroker]:
    with running_broker(in_memory=True) as broker:
        yield broker


@pytest.fixture
def mirroring(
    source_broker: RunningBroker, target_broker: RunningBroker, tmp_path: Path
) -> Mirroring:
    """Between two embedded brokers that all tests of a module share: each has topics of its own."""
    return Mirroring(Bus(source_broker.bootstrap), Bus(target_broker.bootstrap), tmp_path)


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A name no other test uses."""
    return re.sub(r"[^A-Za-z0-9_.-]", "-", request.node.name)[-80:]
