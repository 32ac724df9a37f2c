"""A small pipeline for tests: numbers as text from a topic to a directory of JSON files."""

import json
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.client.bus import Bus
from headrace.pipelines.definition import (
    ERROR_COLUMN,
    OpenSink,
    Pipeline,
    Run,
    Sink,
    Transform,
    unchanged,
)
from headrace.pipelines.running.reporting import View
from headrace.pipelines.running.run_state import read_run
from headrace.pipelines.running.runner import RunReport, run_pipeline
from headrace.pipelines.running.settings import RunSettings, Trigger
from headrace.pipelines.source import TopicSource
from headrace.pipelines.spans import Batch, Written

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PATIENCE_S = 180.0
NOW = Trigger("available-now")


@dataclass(frozen=True)
class Numbers:
    """A value is a number, or it is bad."""

    can_fail: bool = True

    def describe(self) -> str:
        return "numbers"

    def decode(self, records: "DataFrame") -> "DataFrame":
        return records.selectExpr(
            "try_cast(cast(value as string) as bigint) as number",
            "struct(key, topic, partition, offset, timestamp, headers, value is null as "
            "is_tombstone) as _record",
            f"if(try_cast(cast(value as string) as bigint) is null, 'no number', null) as "
            f"{ERROR_COLUMN}",
        )

    def explain(self, value: bytes | None) -> str:
        return f"{value!r} is no number"


@dataclass(frozen=True)
class JsonFiles(Sink):
    """One file a batch. `on_write` is called in the middle of each."""

    directory: Path
    on_write: Callable[[int], None] = lambda batch_id: None
    opened: list[str] = field(default_factory=list)

    def describe(self) -> str:
        return f"JSON files in {self.directory.name}"

    def open(self, run: Run) -> OpenSink:
        self.directory.mkdir(exist_ok=True)
        self.opened.append(run.app_id)
        return _OpenJsonFiles(self, run.app_id)

    def numbers(self) -> list[int]:
        """All that was written, sorted."""
        lines = (path.read_text().splitlines() for path in self.directory.glob("*.json"))
        return sorted(json.loads(line) for each in lines for line in each)


class _OpenJsonFiles(OpenSink):
    def __init__(self, sink: JsonFiles, app_id: str) -> None:
        self._sink = sink
        self._note = sink.directory / f"{app_id}.note"

    def written(self) -> Written:
        try:
            return Written.from_json(self._note.read_text())
        except FileNotFoundError:
            return Written()

    def write(self, rows: "DataFrame", batch: Batch) -> bool:
        files = len(list(self._sink.directory.glob("*.json")))
        lines = [str(row.number) for row in rows.select("number").collect()]
        self._sink.on_write(batch.number)
        (self._sink.directory / f"{files:05}.json").write_text("\n".join(lines))
        self._note.write_text(self.written().after(batch).to_json())
        return True


def a_pipeline(
    topics: str | tuple[str, ...],
    *sinks: Sink,
    transform: Transform = unchanged,
    max_rows: int | None = None,
    name: str = "numbers",
    **source: Any,
) -> Pipeline:
    return Pipeline(
        name=name,
        summary="Numbers.",
        source=TopicSource(
            topics=(topics,) if isinstance(topics, str) else topics,
            max_rows_per_batch=max_rows,
            **source,
        ),
        decoder=Numbers(),
        sinks=sinks,
        transform=transform,
    )


def a_topic(
    bus: Bus, values: Iterable[object] = (), partitions: int = 2, name: str | None = None
) -> str:
    """A new topic that holds these values, in turn in its partitions."""
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.cimpl import NewTopic

    topic = name or f"t-{uuid.uuid4().hex[:12]}"
    admin = AdminClient(bus.client_config())
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(PATIENCE_S)
    send(bus, topic, values, partitions)
    return topic


def again(bus: Bus, topic: str, values: Iterable[object]) -> None:
    """Delete a topic and make it again, with other values in its only partition."""
    from confluent_kafka.admin import AdminClient

    admin = AdminClient(bus.client_config())
    admin.delete_topics([topic])[topic].result(PATIENCE_S)
    a_topic(bus, values, partitions=1, name=topic)


def send(bus: Bus, topic: str, values: Iterable[object], partitions: int = 2) -> None:
    from confluent_kafka import Producer

    producer = Producer(bus.client_config({"linger.ms": 1}))
    for index, value in enumerate(values):
        producer.produce(topic, str(value).encode(), partition=index % partitions)
    assert producer.flush(PATIENCE_S) == 0


def committed(bus: Bus, group: str, topic: str) -> dict[int, int]:
    """What a group has committed, by partition."""
    from confluent_kafka import ConsumerGroupTopicPartitions
    from confluent_kafka.admin import AdminClient

    admin = AdminClient(bus.client_config())
    futures = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
    places = futures[group].result(PATIENCE_S).topic_partitions
    return {each.partition: each.offset for each in places if each.topic == topic}


def values_in(bus: Bus, topic: str) -> list[bytes]:
    """All values of a topic, whatever its partitions."""
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    consumer = Consumer(bus.client_config({"group.id": "reader", "enable.partition.eof": True}))
    try:
        numbers = consumer.list_topics(topic, PATIENCE_S).topics[topic].partitions
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in numbers])
        values, ends = list[bytes](), 0
        while ends < len(numbers):
            message = consumer.poll(PATIENCE_S)
            assert message is not None
            if message.error():
                ends += 1
            else:
                values.append(message.value())
        return values
    finally:
        consumer.close()


def wait_until(holds: Callable[[], object], patience_s: float = PATIENCE_S) -> None:
    deadline = time.monotonic() + patience_s
    while not holds():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.05)


class Gate:
    """Holds a batch in the middle of its sink until it is let go."""

    def __init__(self) -> None:
        self.is_reached = threading.Event()
        self._is_open = threading.Event()

    def __call__(self, batch_id: int) -> None:
        self.is_reached.set()
        assert self._is_open.wait(PATIENCE_S)

    def open(self) -> None:
        self._is_open.set()


class Told(View):
    """Keeps what a run tells."""

    def __init__(self) -> None:
        self.facts: Mapping[str, object] = {}
        self.sentences = list[str]()

    def begin(self, facts: Mapping[str, object]) -> None:
        self.facts = facts

    def tell(self, sentence: str) -> None:
        self.sentences.append(sentence)


class Stage:
    """Runs pipelines under one name and state directory."""

    def __init__(self, spark: "SparkSession", bus: Bus, directory: Path) -> None:
        self.spark, self.bus, self.directory = spark, bus, directory
        self.sink = JsonFiles(directory / "out")
        self.view = Told()
        self.stop = threading.Event()
        self._pool = ThreadPoolExecutor(1)

    def run(self, pipeline: Pipeline, **settings: Any) -> RunReport:
        defaults: dict[str, Any] = {"name": "r", "state_dir": self.directory, "trigger": NOW}
        return run_pipeline(
            pipeline,
            self.bus,
            RunSettings(**{**defaults, **settings}),
            view=self.view,
            is_stop_asked=self.stop.is_set,
            spark=self.spark,
        )

    def start(self, pipeline: Pipeline, **settings: Any) -> "Future[RunReport]":
        """Run it in a thread."""
        self._ending = self._pool.submit(self.run, pipeline, **settings)
        return self._ending

    def wait_until(self, holds: Callable[[], object]) -> None:
        """Wait for something to come true while the run runs."""
        wait_until(lambda: holds() or (self._ending.done() and self._ending.result()))
        assert holds()

    @property
    def state(self) -> str:
        status = read_run(self.directory, "r")
        return "" if status is None else status.state

    def close(self) -> None:
        self.stop.set()
        self._pool.shutdown()
