"""A topic as a sink: rows with key, value, headers, partition and timestamp become records.

Spark's own Kafka sink cannot set timestamps and cannot tell what a dead attempt has written. Here
librdkafka's idempotent producer runs in the workers. Beside the checkpoint is noted what was
written and where the topic ended then; every record carries a mark that says which record it was
made from, and what it is. A run first looks at what lies behind the noted ends, and leaves out
what is there. Without a checkpoint, or with guard=off, a repeated batch is written again.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.client.admin import Admin
from headrace.client.bus import READ_UNCOMMITTED
from headrace.client.errors import BusError
from headrace.model import INTERNAL_TOPICS, topic_name_fault
from headrace.patience import Patience
from headrace.pipelines.definition import RECORD_COLUMN, OpenSink, Option, Run, Sink
from headrace.pipelines.errors import PipelineDefinitionError, SinkError
from headrace.pipelines.hadoop_files import HadoopFiles
from headrace.pipelines.sinks.topic_attempts import with_stage_attempt
from headrace.pipelines.sinks.topic_leftovers import Unnoted
from headrace.pipelines.sinks.topic_marks import Marks
from headrace.pipelines.sinks.topic_notes import (
    TopicEnd,
    TopicNotes,
    TopicSinkNote,
    topic_ends,
)
from headrace.pipelines.sinks.topic_writer import RESULT_SCHEMA, RecordSender
from headrace.pipelines.spans import Batch, Written
from headrace.pipelines.topic_positions import TopicPositions

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row

HEADER_TYPE = "array<struct<key: string, value: binary>>"
GUARDS = ("header", "off")
TOPIC_OPTIONS = (
    Option(
        "guard",
        "header: each record names its source, so that none is written twice; or off",
        "header",
    ),
    Option(
        "create", "partitions of a topic that is missing: auto, a number, or off to refuse", "auto"
    ),
)
_CREATE_TIMEOUT_S = 30.0
_POSITION_COLUMN = "position"
_ANY = "_any"  # the notes of a sink whose topics rows name


class BrokerAwayError(SinkError):
    """The broker took no records for a while; the run may try again."""

    is_retriable = True


@dataclass(frozen=True)
class TopicSink(Sink):
    """One topic, or with `topic` None the one that the column `topic` names."""

    topic: str | None = None
    guard: str = "header"
    create: str = "auto"
    # Whether a topic may be written that the run reads.
    may_loop: bool = False

    def __post_init__(self) -> None:
        if self.topic is not None:
            refuse_topic_name(self.topic, "topic")
        if self.guard not in GUARDS:
            raise PipelineDefinitionError(f"guard={self.guard}: write {' or '.join(GUARDS)}")
        if self.create not in ("auto", "off") and not (
            self.create.isdecimal() and int(self.create) > 0
        ):
            raise PipelineDefinitionError(
                f"create={self.create}: write auto, off or a number of partitions"
            )

    def describe(self) -> str:
        """A few words for people."""
        return f"topic {self.topic}" if self.topic else "the topics that rows name"

    def open(self, run: Run) -> OpenSink:
        """Reach the broker, and learn which batch was the last."""
        return OpenTopicSink(run, self)


def refuse_topic_name(name: str, what: str) -> None:
    """Raise PipelineDefinitionError unless a topic may have this name, and clients may write it."""
    fault = topic_name_fault(name)
    if fault is None and name in INTERNAL_TOPICS:
        fault = f"'{name}' is Kafka's own"
    if fault is not None:
        raise PipelineDefinitionError(f"{what} {name}: no name for a topic: {fault}")


def notes_folder(topic: str | None) -> str:
    """Where a sink's notes are, in the checkpoint; None: that of the topics that rows name."""
    # A topic may have that name; none has a tilde in it.
    name = f"~{_ANY}" if topic == _ANY else topic or _ANY
    return f"topic-sink/{name}"


def from_uri(uri: str, options: Mapping[str, str]) -> TopicSink:
    """Read `topic:NAME`, or `topic:` for rows that name their topic."""
    name = uri.partition(":")[2].strip("/")
    return TopicSink(name or None, options.get("guard", "header"), options.get("create", "auto"))


class OpenTopicSink(OpenSink):
    """One run's hand on a topic."""

    def __init__(self, run: Run, sink: TopicSink) -> None:
        self._run = run
        self._sink = sink
        # A topic ends where its records do, also those of transactions that are still open.
        self._positions = TopicPositions(run.bus, isolation_level=READ_UNCOMMITTED)
        self._known_topics = set(self._positions.topics())
        if sink.topic and sink.topic not in self._known_topics and sink.create == "off":
            raise SinkError(
                f"there is no topic {sink.topic} at {run.bus.bootstrap}; "
                f"'headrace topics create {sink.topic}' makes it"
            )
        self._topic_ids = dict[str, str]()
        self._notes: TopicNotes | None = None
        self._unnoted: Unnoted | None = None
        if run.checkpoint is None:
            return
        if sink.guard == "header" and run.spark.conf.get("spark.speculation", "false") == "true":
            raise SinkError(
                "spark.speculation=true runs a task twice at once, so that records would be on "
                "the topic twice; leave it out, or say that this is fine with guard=off"
            )
        self._notes = TopicNotes(HadoopFiles(run.spark, run.checkpoint), notes_folder(sink.topic))
        if self._notes.last is None:
            # Nothing on any topic is this app's yet.
            self._notes.put(TopicSinkNote(ends=self._ends()))

    def written(self) -> Written:
        """What the notes beside the checkpoint say."""
        return self._notes.last.written if self._notes and self._notes.last else Written()

    def write(self, rows: "DataFrame", batch: Batch) -> bool:
        """Write a batch; what an earlier attempt at it has written is left out."""
        records = as_records(rows, self._sink.topic)
        self._create_missing(records)
        is_guarded = bool(self._notes) and self._sink.guard == "header" and _has_source(rows)
        there = Marks()
        if self._notes and is_guarded:
            there = self._there(records, batch)
            self._notes.begin()
        if there:
            records = with_sources_together(records)
        if is_guarded:
            records = with_stage_attempt(records)
        writer = RecordSender(
            self._run.bus,
            app_id=self._run.app_id,
            is_guarded=is_guarded,
            there=there,
            log_ids={log.topic: log.topic_id for log, _ in batch.holds or ()},
            refuse=None if self._sink.topic or self._sink.may_loop else self._run.refuse_topic,
        )
        results = self._collect(records.mapInArrow(writer, RESULT_SCHEMA))
        left_out = sum(row["left_out"] for row in results)
        if left_out:
            self._run.tell(
                f"batch {batch.number}: {left_out:,} records were on "
                f"{self._sink.describe()} already"
            )
        self._note(batch, {topic for row in results for topic in row["topics"]})
        return True

    def _there(self, records: "DataFrame", batch: Batch) -> Marks:
        """What of a batch is on the topics, though nobody has noted that it was written."""
        if self._unnoted is None:
            assert self._notes is not None
            assert self._notes.last is not None
            self._unnoted = Unnoted(self._run, self._notes.last, self._ends())
        name = self._sink.topic
        return self._unnoted.of(batch, lambda: {name} if name else _named(records))

    def _collect(self, results: "DataFrame") -> "list[Row]":
        """Write, and give what the tasks say of it; whoever tries again has to look again."""
        unnoted, self._unnoted = self._unnoted, None
        rows = results.collect()
        for row in rows:
            if row["error"]:
                raise (BrokerAwayError if row["is_retriable"] else SinkError)(row["error"])
        self._unnoted = unnoted
        return rows

    def _note(self, batch: Batch, topics: set[str]) -> None:
        """Note that a batch is written, and that the topics hold nothing else of ours.

        Not the latter while they hold more: batches that came after a checkpoint was copied.
        """
        if self._notes is None:
            return
        assert self._notes.last is not None
        note = self._notes.last
        ends: Mapping[str, TopicEnd] = self._ends()
        if self._unnoted is not None:
            ends = self._unnoted.passed(batch, ends)
        self._notes.put(TopicSinkNote(note.written.after(batch), ends, note.topics | topics))

    def _ends(self) -> dict[str, TopicEnd]:
        known = self._positions.topics()
        topics = sorted(set(known) & {self._sink.topic} if self._sink.topic else known)
        ends = self._positions.ends((topic, each) for topic in topics for each in known[topic])
        # One that is made again meanwhile keeps its former id here: the next run notices.
        if new := set(topics) - set(self._topic_ids):
            self._topic_ids |= self._positions.identity(new).topic_ids
        return topic_ends(ends, self._topic_ids, topics)

    def _create_missing(self, records: "DataFrame") -> None:
        from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

        topic = self._sink.topic
        if topic is None or topic in self._known_topics:
            return
        if self._sink.create == "auto":
            highest = records.agg(F.max("partition")).collect()[0][0]
            partitions = -1 if highest is None else highest + 1
        else:
            partitions = int(self._sink.create)
        create_topic(self._run, topic, partitions)
        self._known_topics.add(topic)


def create_topic(run: Run, topic: str, partitions: int) -> None:
    """Make a topic; -1 partitions are as many as the broker gives by default."""
    admin = Admin(run.bus, timeout_s=_CREATE_TIMEOUT_S)
    try:
        admin.ensure_topic(topic, partitions)
    except BusError as error:
        kind = BrokerAwayError if error.is_passing else SinkError
        raise kind(f"cannot create topic {topic}: {error}") from error
    # A cluster's nodes learn of it one after the other.
    Patience(_CREATE_TIMEOUT_S).until(lambda: topic in TopicPositions(run.bus).topics())
    how_many = "" if partitions < 0 else f" with {partitions} partitions"
    run.tell(f"created topic {topic}{how_many}")


def as_records(rows: "DataFrame", topic: str | None) -> "DataFrame":
    """The columns a TopicWriter takes; what the rows do not have is null."""
    from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

    if "value" not in rows.columns:
        raise SinkError(
            "rows for a topic need a column value; "
            f"these have {', '.join(rows.columns)}: make one in the transform, as to_json does"
        )
    if topic is None and "topic" not in rows.columns:
        raise SinkError("a sink without a topic takes it from a column topic; the rows have none")

    def column(name: str, kind: str) -> "Column":
        found = F.col(name) if name in rows.columns else F.lit(None)
        return found.cast(kind).alias(name)

    def source(name: str, kind: str) -> "Column":
        found = F.col(f"{RECORD_COLUMN}.{name}") if _has_source(rows) else F.lit(None)
        return found.cast(kind).alias(f"source_{name}")

    target = F.col("topic") if topic is None else F.lit(topic)
    return rows.select(
        column("key", "binary"),
        column("value", "binary"),
        column("headers", HEADER_TYPE),
        column("partition", "int"),
        # Milliseconds, as the wire has them; not a timestamp, which Arrow would give a time zone.
        F.unix_millis(column("timestamp", "timestamp")).alias("timestamp_ms"),
        target.cast("string").alias("topic"),
        source("topic", "string"),
        source("partition", "int"),
        source("offset", "bigint"),
    )


def _has_source(rows: "DataFrame") -> bool:
    return RECORD_COLUMN in rows.columns


def with_sources_together(records: "DataFrame") -> "DataFrame":
    """All that was made from one partition's records in one task, in the order it was made."""
    from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

    tasks = records.sparkSession.sparkContext.defaultParallelism
    placed = records.withColumn(_POSITION_COLUMN, F.monotonically_increasing_id())
    together = placed.repartition(tasks, "source_topic", "source_partition")
    return together.sortWithinPartitions(_POSITION_COLUMN).drop(_POSITION_COLUMN)


def _named(records: "DataFrame") -> set[str]:
    """The topics that rows name; one more pass over them."""
    return {row["topic"] for row in records.select("topic").distinct().collect() if row["topic"]}
