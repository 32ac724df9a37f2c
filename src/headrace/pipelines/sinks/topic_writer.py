"""What runs in Spark's workers to write records to topics: one idempotent producer a task.

It gives one row: how many were written, how many were there already, and a sentence if one was
refused. An error is a row and not an exception, for Spark would try the task three times more.

A task that Spark tries again, alone or with its stage, cannot know which of the records on the
topic are its own and which another task's. It writes nothing and says so; the run then repeats
the batch, and compares.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any

from headrace.client.bus import Bus
from headrace.client.error_table import is_too_large
from headrace.client.errors import BusError
from headrace.client.librdkafka import bus_errors, error_of, make_producer
from headrace.errors import HeadraceError
from headrace.pipelines.sinks.topic_attempts import is_repeated
from headrace.pipelines.sinks.topic_marks import (
    SOURCE_HEADER,
    Headers,
    Marks,
    RecordPlace,
    digest_of,
    mark_of,
)

if TYPE_CHECKING:
    import pyarrow

RESULT_SCHEMA = (
    "written bigint, left_out bigint, topics array<string>, error string, is_retriable boolean"
)

# What waits in one task, at most; a full queue makes the task wait for the broker.
MAX_QUEUED_MESSAGES = 100_000
MAX_QUEUED_KBYTES = 64 * 1024
# Long enough for a broker to be restarted, short enough for the run to say what is wrong.
DELIVERY_TIMEOUT_MS = 120_000
_LINGER_MS = 20  # full batches cost the broker least; a batch of rows is never urgent
_POLL_EVERY = 1_000  # messages between two looks at what was refused
_FULL_QUEUE_WAIT_S = 0.1


@dataclass(frozen=True)
class RecordSender:
    """The function for mapInArrow; it travels to the workers."""

    bus: Bus
    app_id: str
    is_guarded: bool
    # What an earlier attempt has written, to be left out. Then all rows of a source are in one
    # task: two would both take the same mark for their own.
    there: Marks = field(default_factory=Marks)
    # The id of each source topic's log, where it is known.
    log_ids: Mapping[str, str] = field(default_factory=dict)
    # Why a row may not be written to the topic it names; None: it may.
    refuse: Callable[[str], str | None] | None = None

    def __call__(self, batches: "Iterator[pyarrow.RecordBatch]") -> "Iterator[pyarrow.RecordBatch]":
        """Write all rows, then give the one row about it."""
        import pyarrow

        task = _Task(self)
        try:
            first = next((batch for batch in batches if batch.num_rows), None)
            rows = batches if first is None else chain([first], batches)
            if self.is_guarded and is_repeated(first):
                task.pass_over(rows)
            else:
                task.write(rows)
        except HeadraceError as error:
            task.fail(str(error), is_retriable=getattr(error, "is_retriable", False))
        topics = pyarrow.array([sorted(task.topics)], pyarrow.list_(pyarrow.string()))
        yield pyarrow.RecordBatch.from_pydict(
            {
                "written": pyarrow.array([task.written], pyarrow.int64()),
                "left_out": pyarrow.array([task.left_out], pyarrow.int64()),
                "topics": topics,
                "error": pyarrow.array([task.error], pyarrow.string()),
                "is_retriable": pyarrow.array([task.is_retriable], pyarrow.bool_()),
            }
        )


class _Task:
    def __init__(self, plan: RecordSender) -> None:
        self._plan = plan
        self.written = self.left_out = 0
        self.topics = set[str]()
        self.error: str | None = None
        self.is_retriable = False
        self._producer: Any = None

    def fail(self, sentence: str, *, is_retriable: bool = False) -> None:
        """Keep the first thing that went wrong."""
        if self.error is None:
            self.error = sentence
            self.is_retriable = is_retriable

    def pass_over(self, batches: "Iterator[pyarrow.RecordBatch]") -> None:
        """Write nothing. The rows are asked for all the same: what made the first try fail may
        be in them, and is then what the user has to hear of."""
        for _ in batches:
            pass
        self.fail("Spark lost a task while it wrote, so the batch is repeated", is_retriable=True)

    def write(self, batches: "Iterator[pyarrow.RecordBatch]") -> None:
        """Send every row and wait until each has its answer."""
        self._producer = self._connect()
        for batch in batches:
            self._send(batch)
            if self.error:
                # What is under way is waited for: the next attempt has to find it on the topic.
                self._producer.purge(in_flight=False)
                break
        if waiting := self._producer.flush():
            self.fail(f"{waiting} records were not acknowledged")

    def _connect(self) -> Any:
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
        return make_producer(self._plan.bus, settings)

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
        row: tuple[Any, ...] = ()
        try:
            with bus_errors():  # around all rows and not around each: there are millions
                for number, row in enumerate(rows):
                    if number % _POLL_EVERY == 0:
                        self._producer.poll(0)
                    self._send_row(*row)
                    if self.error:
                        return
        except BusError as error:
            topic, _, value, partition, *_ = row
            self._refuse(error, topic, _number(partition), len(value or b""))

    def _send_row(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        partition: int | None,
        time_ms: int | None,
        headers: list[dict[str, Any]] | None,
        *source: Any,
    ) -> None:
        if topic not in self.topics:
            self._check(topic)
        if self.error:
            return
        pairs: Headers = [(header["key"], header["value"]) for header in headers or ()]
        # A row that was made from no record, as an outer join gives, cannot be known again.
        if self._plan.is_guarded and source[0] is not None:
            place = RecordPlace(*source)
            log_id = self._plan.log_ids.get(place.topic, "")
            digest = digest_of(log_id, topic, partition, key, value, time_ms, pairs)
            if self._plan.there.take(place, digest):
                self.left_out += 1
                return
            pairs.append((SOURCE_HEADER, mark_of(self._plan.app_id, place, digest)))
        # Zero is librdkafka's word for now.
        self._produce(topic, value, key, _number(partition), time_ms or 0, pairs)

    def _check(self, topic: str | None) -> None:
        """See that a topic may be written, when a row first names it."""
        if topic is None:
            self.fail("a row names no topic: its column topic is null")
            return
        if self._plan.refuse is not None and (reason := self._plan.refuse(topic)):
            self.fail(reason)
            return
        self.topics.add(topic)

    def _produce(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        partition: int,
        time_ms: int,
        headers: Headers,
    ) -> None:
        while not self.error:
            try:
                self._producer.produce(
                    topic, value, key, partition, timestamp=time_ms, headers=headers or None
                )
            except BufferError:
                self._producer.poll(_FULL_QUEUE_WAIT_S)
            else:
                self.written += 1
                return

    def _refused(self, error: Any, message: Any) -> None:
        if error is not None:
            size = len(message.value() or b"")
            self._refuse(error_of(error), message.topic(), message.partition(), size)

    def _refuse(self, error: BusError, topic: str, partition: int, size_bytes: int) -> None:
        sentence = _sentence(error, topic, partition, size_bytes)
        self.fail(sentence, is_retriable=error.is_passing)


def _number(partition: int | None) -> int:
    """The partition in librdkafka's numbers, of which one leaves it to the key."""
    return -1 if partition is None else partition


def _sentence(error: BusError, topic: str, partition: int, size_bytes: int) -> str:
    if error.reason is not None and is_too_large(error.reason):
        return (
            f"a record of {size_bytes:,} bytes is too large for topic {topic}: raise its "
            "max.message.bytes and the client property message.max.bytes"
        )
    if error.name == "_UNKNOWN_PARTITION":
        return (
            f"topic {topic} has no partition {partition}: add partitions to it, or let keys decide"
        )
    if error.name == "_MSG_TIMED_OUT":
        return (
            f"topic {topic} took no record within {DELIVERY_TIMEOUT_MS // 1000} s: "
            "is the broker up?"
        )
    return f"topic {topic} refused a record: {error}"
