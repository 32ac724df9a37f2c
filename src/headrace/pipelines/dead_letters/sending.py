"""What runs in Spark's workers to write dead letters: each record explained, fitted and sent.

At least once, by one idempotent producer a task. The topic is made by the first task that has a
letter for it. A task gives one row; an error is a row and not an exception, for Spark would try
the task three times more.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from headrace.client.admin import Admin
from headrace.client.bus import Bus
from headrace.client.error_table import is_too_large
from headrace.client.errors import BusError
from headrace.client.librdkafka import bus_errors, error_of, make_producer
from headrace.errors import HeadraceError
from headrace.pipelines.dead_letters.fitting import Draft, LetterTooLargeError, fit
from headrace.pipelines.dead_letters.letter import (
    CLUSTER_ID,
    OFFSET,
    PARTITION,
    PIPELINE,
    REASON,
    TIMESTAMP,
    TOPIC,
    TOPIC_ID,
)
from headrace.pipelines.definition import ERROR_COLUMN, Decoder

if TYPE_CHECKING:
    import pyarrow

RESULT_SCHEMA = "written bigint, cut bigint, error string, is_retriable boolean"
COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp_ms", "headers", ERROR_COLUMN)
MAX_REASON_CHARACTERS = 1000  # a header is no place for a page
# Of a topic that is made here. A record that just fits its topic is larger as a letter.
MAX_LETTER_BYTES = 16 * 1024 * 1024
# Below this nobody's broker refuses a batch for its size alone.
_LEAST_LIMIT = 512
_ADMIN_TIMEOUT_S = 30.0
_DELIVERY_TIMEOUT_MS = 120_000  # as a topic sink's
_MAX_BATCH_BYTES = 1_000_000
_QUEUE_KBYTES = 64 * 1024
_WAIT_S = 0.1
_MAX_MESSAGE_BYTES = 1_000_000_000  # librdkafka's own bound of message.max.bytes


@dataclass(frozen=True)
class LetterSender:
    """The function for mapInArrow; it travels to the workers."""

    decoder: Decoder
    bus: Bus
    pipeline: str
    topic: str
    cluster_id: str = ""
    # Of the source topics, as far as they are known; the bus is asked for the others.
    topic_ids: dict[str, str] = field(default_factory=dict)

    def __call__(self, batches: "Iterator[pyarrow.RecordBatch]") -> "Iterator[pyarrow.RecordBatch]":
        """Write all rows, then give the one row about it."""
        import pyarrow

        task = _Task(self)
        try:
            for batch in batches:
                task.send(batch)
            task.finish()
        except BusError as error:
            task.fail(error)
        except HeadraceError as error:
            task.error = task.error or str(error)
        yield pyarrow.RecordBatch.from_pydict(
            {
                "written": pyarrow.array([task.written], pyarrow.int64()),
                "cut": pyarrow.array([task.cut], pyarrow.int64()),
                "error": pyarrow.array([task.error], pyarrow.string()),
                "is_retriable": pyarrow.array([task.is_retriable], pyarrow.bool_()),
            }
        )


class _Task:
    def __init__(self, plan: LetterSender) -> None:
        self._plan = plan
        self._cluster_id = plan.cluster_id
        self._topic_ids = dict(plan.topic_ids)
        self._admin = Admin(plan.bus, timeout_s=_ADMIN_TIMEOUT_S)
        self._producer: Any = None
        self._limit = MAX_LETTER_BYTES
        self._too_large = list[Draft]()
        self.written = self.cut = 0
        self.error: str | None = None
        self.is_retriable = False

    def fail(self, error: BusError) -> None:
        """Keep the first thing that went wrong."""
        if self.error is None:
            self.error = (
                f"dead-letter topic {self._plan.topic} takes no letters: {error}; create it "
                "yourself or name another with --dead-letter-topic"
            )
            self.is_retriable = error.is_passing

    def send(self, batch: "pyarrow.RecordBatch") -> None:
        """Queue a letter for every row."""
        columns = batch.to_pydict()
        rows = zip(*(columns[name] for name in COLUMNS), strict=True)
        for key, value, topic, partition, offset, timestamp_ms, headers, error in rows:
            if self._producer is None:
                self._open()
            ours = {
                PIPELINE: self._plan.pipeline,
                REASON: explain(self._plan.decoder, error, value),
                CLUSTER_ID: self._cluster_id,
                TOPIC_ID: self._id_of(topic),
                TOPIC: topic,
                PARTITION: str(partition),
                OFFSET: str(offset),
                TIMESTAMP: str(timestamp_ms),
            }
            own = [(each["key"], each["value"]) for each in headers or ()]
            self._produce(Draft(key, value, own, ours))
            if self.error:
                return

    def finish(self) -> None:
        """Wait for every answer; what is refused for its size is cut further and sent again."""
        if self._producer is None:
            return
        if self.error:
            self._producer.purge()
        self._producer.flush()
        while self._too_large and not self.error:
            self._limit //= 2
            if self._limit < _LEAST_LIMIT:
                raise LetterTooLargeError(
                    f"the bus refuses dead letters as too large though each was cut to "
                    f"{2 * self._limit:,} bytes; raise max.message.bytes of {self._plan.topic}"
                )
            drafts, self._too_large = self._too_large, []
            for draft in drafts:
                self._produce(draft)
            self._producer.flush()

    def _open(self) -> None:
        make_topic(self._admin, self._plan.topic)
        self._limit = limit_of(self._admin, self._plan.topic)
        settings: dict[str, object] = {
            "enable.idempotence": True,
            # As Java's clients do, so that a key keeps its partition whoever writes it.
            "partitioner": "murmur2_random",
            "delivery.timeout.ms": _DELIVERY_TIMEOUT_MS,
            # A batch is held against the topic's limit as a whole, and librdkafka splits none.
            "batch.size": max(min(self._limit, _MAX_BATCH_BYTES), 1),
            "message.max.bytes": min(max(2 * self._limit, _MAX_BATCH_BYTES), _MAX_MESSAGE_BYTES),
            "queue.buffering.max.kbytes": max(_QUEUE_KBYTES, 2 * self._limit // 1024),
        }
        self._producer = make_producer(self._plan.bus, settings)
        if not self._cluster_id:
            self._cluster_id = self._admin.cluster_id()

    def _id_of(self, topic: str) -> str:
        if not self._topic_ids.get(topic):
            self._topic_ids[topic] = self._admin.topic_ids([topic]).get(topic, "")
        return self._topic_ids[topic]

    def _produce(self, draft: Draft) -> None:
        fitted = fit(draft, self._limit)
        arguments: dict[str, Any] = {
            "value": fitted.value,
            "key": fitted.key,
            "headers": fitted.all_headers,
            "on_delivery": self._account(draft, is_cut=fitted is not draft),
        }
        while True:
            try:
                with bus_errors():
                    self._producer.produce(self._plan.topic, **arguments)
            except BufferError:
                self._producer.poll(_WAIT_S)
            except BusError as error:
                if not (error.reason and is_too_large(error.reason)):
                    raise
                self._too_large.append(draft)
                break
            else:
                break
        self._producer.poll(0)

    def _account(self, draft: Draft, *, is_cut: bool) -> Callable[[Any, Any], None]:
        def on_delivery(error: Any, _message: object) -> None:
            if error is None:
                self.written += 1
                self.cut += is_cut
            elif is_too_large(error):
                self._too_large.append(draft)
            else:
                self.fail(error_of(error))

        return on_delivery


def explain(decoder: Decoder, error: str | None, value: bytes | None) -> str:
    """Say why a record could not be decoded, whatever the decoder makes of the question."""
    # What is wrong need not be in the value: a decoder may look at the key too.
    explain_error = getattr(decoder, "explain_error", None)
    try:
        known = explain_error(error, value) if explain_error and error else None
        reason = known or decoder.explain(value)
    except Exception as failure:
        # The letter matters more than its reason, and decoders may be anybody's.
        reason = f"it cannot be decoded, nor explained: {type(failure).__name__}: {failure}"
    # Text cut out of a bad value may hold half a character.
    reason = reason.encode("utf-8", "replace").decode()
    if len(reason) > MAX_REASON_CHARACTERS:
        reason = reason[:MAX_REASON_CHARACTERS] + "…"
    return reason


def make_topic(admin: Admin, topic: str) -> None:
    """Make the topic unless it is there, with the broker's partitions and copies."""
    admin.ensure_topic(topic, configs={"max.message.bytes": str(MAX_LETTER_BYTES)})


def limit_of(admin: Admin, topic: str) -> int:
    """The largest batch the topic takes; of one that tells nobody, what ours would take."""
    try:
        configs = {each.name: each.value for each in admin.configs("topic", topic)}
        return int(configs["max.message.bytes"] or "")
    except (BusError, KeyError, ValueError):
        return MAX_LETTER_BYTES
