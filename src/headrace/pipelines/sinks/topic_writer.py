"""What runs in Spark's workers to write records to topics: one idempotent producer a task.

It gives one row: how many were written, how many were there already, and a sentence if one was
refused. An error is a row and not an exception, for Spark would try the task three times more.
"""

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headrace.errors import HeadraceError
from headrace.pipelines.bus import Bus

if TYPE_CHECKING:
    import pyarrow

RESULT_SCHEMA = "written bigint, left_out bigint, error string, is_retriable boolean"
# Says which record this one was made from: `<app id>/<topic>/<partition>/<offset>`.
SOURCE_HEADER = "headrace-source"

# What waits in one task, at most; a full queue makes the task wait for the broker.
MAX_QUEUED_MESSAGES = 100_000
MAX_QUEUED_KBYTES = 64 * 1024
# Long enough for a broker to be restarted, short enough for the run to say what is wrong.
DELIVERY_TIMEOUT_MS = 120_000
_LINGER_MS = 20  # full batches cost the broker least; a batch of rows is never urgent
_POLL_EVERY = 1_000  # messages between two looks at what was refused
_FULL_QUEUE_WAIT_S = 0.1
_READ_TIMEOUT_S = 60.0
_READ_AT_ONCE = 10_000
_READ_PAUSE_S = 0.2  # consume waits this long for more, even when it has some

# Offsets that are taken, by source topic and partition; a number for each, since a record may be
# made into several.
Taken = dict[tuple[str, int], Counter[int]]


@dataclass(frozen=True)
class TopicWriter:
    """The function for mapInArrow; it travels to the workers."""

    bus: Bus
    app_id: str
    is_guarded: bool
    # Where each topic ended before the batch; None: nothing to compare with.
    starts: dict[str, dict[str, int]] | None
    is_repeated: bool

    def __call__(self, batches: "Iterator[pyarrow.RecordBatch]") -> "Iterator[pyarrow.RecordBatch]":
        """Write all rows, then give the one row about it."""
        import pyarrow
        from confluent_kafka import KafkaException

        task = _Task(self)
        try:
            task.write(batches)
        except KafkaException as error:
            task.fail(error.args[0].str(), is_retriable=_can_pass(error.args[0]))
        except HeadraceError as error:
            task.fail(str(error), is_retriable=getattr(error, "is_retriable", False))
        yield pyarrow.RecordBatch.from_pydict(
            {
                "written": pyarrow.array([task.written], pyarrow.int64()),
                "left_out": pyarrow.array([task.left_out], pyarrow.int64()),
                "error": pyarrow.array([task.error], pyarrow.string()),
                "is_retriable": pyarrow.array([task.is_retriable], pyarrow.bool_()),
            }
        )


class _Task:
    def __init__(self, plan: TopicWriter) -> None:
        self._plan = plan
        self._taken = dict[str, Taken]()
        self._is_comparing = plan.starts is not None and (plan.is_repeated or _is_retried())
        self.written = self.left_out = 0
        self.error: str | None = None
        self.is_retriable = False
        self._producer: Any = None

    def fail(self, sentence: str, *, is_retriable: bool = False) -> None:
        """Keep the first thing that went wrong."""
        if self.error is None:
            self.error = sentence
            self.is_retriable = is_retriable

    def write(self, batches: "Iterator[pyarrow.RecordBatch]") -> None:
        """Send every row and wait until each has its answer."""
        self._producer = self._connect()
        for batch in batches:
            self._send(batch)
            if self.error:
                self._producer.purge()
                break
        if waiting := self._producer.flush():
            self.fail(f"{waiting} records were not acknowledged")

    def _connect(self) -> Any:
        from confluent_kafka import Producer

        settings = {
            "enable.idempotence": True,
            # As Java's clients do, so that a key keeps its partition whoever writes it.
            "partitioner": "murmur2_random",
            "compression.type": "lz4",
            "linger.ms": _LINGER_MS,
            "queue.buffering.max.messages": MAX_QUEUED_MESSAGES,
            "queue.buffering.max.kbytes": MAX_QUEUED_KBYTES,
            "delivery.timeout.ms": DELIVERY_TIMEOUT_MS,
            # Every delivery is accounted for: flush ends when each has an answer, and those that
            # are refused come back here.
            "delivery.report.only.error": True,
            "on_delivery": self._refused,
        }
        return Producer(self._plan.bus.client_config(settings))

    def _send(self, batch: "pyarrow.RecordBatch") -> None:
        columns = batch.to_pydict()
        rows = zip(
            columns["topic"],
            columns["key"],
            columns["value"],
            columns["partition"],
            columns["timestamp_ms"],
            columns["headers"],
            columns["source_topic"],
            columns["source_partition"],
            columns["source_offset"],
            strict=True,
        )
        for number, (topic, key, value, partition, time_ms, headers, *source) in enumerate(rows):
            if number % _POLL_EVERY == 0:
                self._producer.poll(0)
                if self.error:
                    return
            if self._is_comparing and self._is_taken(topic, source):
                self.left_out += 1
                continue
            pairs = [(header["key"], header["value"]) for header in headers or ()]
            if self._plan.is_guarded:
                pairs.append((SOURCE_HEADER, _mark(self._plan.app_id, source)))
            self._produce(
                topic,
                value,
                key,
                -1 if partition is None else partition,
                # Zero is librdkafka's word for now.
                time_ms or 0,
                pairs,
            )

    def _produce(
        self,
        topic: str | None,
        value: bytes | None,
        key: bytes | None,
        partition: int,
        time_ms: int,
        headers: list[tuple[str, bytes | None]],
    ) -> None:
        from confluent_kafka import KafkaException

        if topic is None:
            self.fail("a row names no topic: its column topic is null")
            return
        while not self.error:
            try:
                self._producer.produce(
                    topic, value, key, partition, timestamp=time_ms, headers=headers or None
                )
            except BufferError:
                self._producer.poll(_FULL_QUEUE_WAIT_S)
            except KafkaException as error:
                reason = error.args[0]
                sentence = _sentence(reason, topic, partition, len(value or b""))
                self.fail(sentence, is_retriable=_can_pass(reason))
            else:
                self.written += 1
                return

    def _refused(self, error: Any, message: Any) -> None:
        if error is not None:
            size = len(message.value() or b"")
            sentence = _sentence(error, message.topic(), message.partition(), size)
            self.fail(sentence, is_retriable=_can_pass(error))

    def _is_taken(self, topic: str, source: list[Any]) -> bool:
        if topic not in self._taken:
            starts = (self._plan.starts or {}).get(topic, {})
            self._taken[topic] = read_taken(self._plan.bus, topic, starts, self._plan.app_id)
        source_topic, partition, offset = source
        offsets = self._taken[topic].get((source_topic, partition))
        if not offsets or not offsets[offset]:
            return False
        offsets[offset] -= 1
        return True


def read_taken(bus: Bus, topic: str, starts: dict[str, int], app_id: str) -> Taken:
    """Which source records an app has written to a topic since it ended at `starts`."""
    from confluent_kafka import Consumer, KafkaException, TopicPartition

    from headrace.pipelines.topic_positions import BusSilentError, TopicPositions

    positions = TopicPositions(bus)
    ends = positions.ends(positions.partitions([topic]))
    left = {number: end for (_, number), end in ends.items() if starts.get(str(number), 0) < end}
    taken = Taken()
    if not left:
        return taken
    consumer: Any = Consumer(
        bus.client_config(
            {
                "group.id": "headrace-topic-sink",  # librdkafka wants one; nothing is committed
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "enable.partition.eof": True,
            }
        )
    )
    try:
        consumer.assign([TopicPartition(topic, each, starts.get(str(each), 0)) for each in left])
        heard_at = time.monotonic()
        while left:
            messages = consumer.consume(_READ_AT_ONCE, _READ_PAUSE_S)
            if messages:
                heard_at = time.monotonic()
            elif time.monotonic() - heard_at > _READ_TIMEOUT_S:
                raise BusSilentError(f"{bus.bootstrap} did not give back what is on topic {topic}")
            for message in messages:
                error = message.error()
                if error is None:
                    _take(taken, message, app_id)
                    if message.offset() + 1 >= left.get(message.partition(), 0):
                        left.pop(message.partition(), None)
                elif error.code() == error._PARTITION_EOF:
                    left.pop(message.partition(), None)
                else:
                    raise KafkaException(error)
    finally:
        consumer.close()
    return taken


def _take(taken: Taken, message: Any, app_id: str) -> None:
    for name, value in message.headers() or ():
        if name != SOURCE_HEADER or value is None:
            continue
        words = value.decode(errors="replace").split("/")
        if len(words) == 4 and words[0] == app_id:
            taken.setdefault((words[1], int(words[2])), Counter())[int(words[3])] += 1


def _can_pass(error: Any) -> bool:
    from headrace.pipelines.topic_positions import is_of_the_moment

    return is_of_the_moment(error) or error.code() == error._MSG_TIMED_OUT


def _mark(app_id: str, source: list[Any]) -> bytes:
    topic, partition, offset = source
    return f"{app_id}/{topic}/{partition}/{offset}".encode()


def _is_retried() -> bool:
    from pyspark import TaskContext

    context = TaskContext.get()
    return context is not None and context.attemptNumber() > 0


def _sentence(error: Any, topic: str, partition: int, size_bytes: int) -> str:
    if error.code() == error.MSG_SIZE_TOO_LARGE:
        return (
            f"a record of {size_bytes:,} bytes is too large for topic {topic}: raise its "
            "max.message.bytes and the client property message.max.bytes"
        )
    if error.code() == error._UNKNOWN_PARTITION:
        return (
            f"topic {topic} has no partition {partition}: add partitions to it, or let keys decide"
        )
    if error.code() == error._MSG_TIMED_OUT:
        return (
            f"topic {topic} took no record within {DELIVERY_TIMEOUT_MS // 1000} s: "
            "is the broker up?"
        )
    return f"topic {topic} refused a record: {error.str()}"
