"""A topic as a sink: rows with key, value, headers, partition and timestamp become records.

Spark's own Kafka sink cannot set timestamps and cannot tell what a dead attempt has written. Here
librdkafka's idempotent producer runs in the workers. Before a batch is written the end offsets of
the topic are noted beside the checkpoint; every record carries a header that says which record it
was made from. An attempt that comes later reads what lies behind the noted offsets and leaves out
what is there. Without a checkpoint, or with guard=off, a repeated batch is written again.
"""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headrace.errors import PipelineDefinitionError, SinkError
from headrace.pipelines.definition import RECORD_COLUMN, OpenSink, Option, Run, Sink
from headrace.pipelines.sinks.lake.files import HadoopFiles
from headrace.pipelines.sinks.topic_writer import RESULT_SCHEMA, TopicWriter
from headrace.pipelines.topic_positions import TopicPositions, is_of_the_moment

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

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
_CREATE_PAUSE_S = 0.1
_BATCH, _PENDING, _DONE = "batch-", ".json", ".done"
_BATCH_DIGITS = 19

# Topic, then partition as JSON writes it, then offset.
Offsets = dict[str, dict[str, int]]


class BrokerAwayError(SinkError):
    """The broker took no records for a while; the run may try again."""

    is_retriable = True


@dataclass(frozen=True)
class TopicSink(Sink):
    """One topic, or with `topic` None the one that the column `topic` names."""

    topic: str | None = None
    guard: str = "header"
    create: str = "auto"

    def __post_init__(self) -> None:
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


def from_uri(uri: str, options: Mapping[str, str]) -> TopicSink:
    """Read `topic:NAME`, or `topic:` for rows that name their topic."""
    name = uri.partition(":")[2].strip("/")
    return TopicSink(name or None, options.get("guard", "header"), options.get("create", "auto"))


class OpenTopicSink(OpenSink):
    """One run's hand on a topic."""

    def __init__(self, run: Run, sink: TopicSink) -> None:
        self._run = run
        self._sink = sink
        self._positions = TopicPositions(run.bus)
        self._known_topics = set(self._positions.topics())
        if sink.topic and sink.topic not in self._known_topics and sink.create == "off":
            raise SinkError(
                f"there is no topic {sink.topic} at {run.bus.bootstrap}; "
                f"'headrace topics create {sink.topic}' makes it"
            )
        self._notes: BatchNotes | None = None
        if run.checkpoint is not None:
            self._notes = BatchNotes(
                HadoopFiles(run.spark, run.checkpoint), f"topic-sink/{sink.topic or '_any'}"
            )

    def write(self, rows: "DataFrame", batch_id: int) -> bool:
        """Write a batch; what an earlier attempt at it has written is left out."""
        if self._notes and batch_id <= self._notes.last_batch:
            return False
        records = as_records(rows, self._sink.topic)
        self._create_missing(records)
        starts = None
        is_guarded = is_repeated = False
        if self._notes and self._sink.guard == "header" and _has_source(rows):
            is_guarded = True
            starts = self._notes.read(batch_id)
            is_repeated = starts is not None
            if starts is None:
                starts = self._ends()
                self._notes.begin(batch_id, starts)
        writer = TopicWriter(
            self._run.bus,
            app_id=self._run.app_id,
            is_guarded=is_guarded,
            starts=starts,
            is_repeated=is_repeated,
        )
        results = records.mapInArrow(writer, RESULT_SCHEMA).collect()
        for row in results:
            if row["error"]:
                raise (BrokerAwayError if row["is_retriable"] else SinkError)(row["error"])
        left_out = sum(row["left_out"] for row in results)
        if left_out:
            self._run.tell(
                f"batch {batch_id}: {left_out:,} records were on {self._sink.describe()} already"
            )
        if self._notes:
            self._notes.end(batch_id)
        return True

    def _ends(self) -> Offsets:
        topics = [self._sink.topic] if self._sink.topic else sorted(self._known_topics)
        offsets = Offsets()
        ends = self._positions.ends(self._positions.partitions(topics))
        for (topic, partition), offset in ends.items():
            offsets.setdefault(topic, {})[str(partition)] = offset
        return offsets

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
    import confluent_kafka.admin
    from confluent_kafka import KafkaException

    kafka: Any = confluent_kafka.admin  # its annotations hide half of what it exports
    admin = kafka.AdminClient(run.bus.client_config())
    wanted = kafka.NewTopic(topic, num_partitions=partitions, replication_factor=-1)
    try:
        admin.create_topics([wanted], request_timeout=_CREATE_TIMEOUT_S)[topic].result()
    except KafkaException as error:
        if error.args[0].name() != "TOPIC_ALREADY_EXISTS":
            kind = BrokerAwayError if is_of_the_moment(error.args[0]) else SinkError
            raise kind(f"cannot create topic {topic}: {error.args[0].str()}") from error
    # A cluster's nodes learn of it one after the other.
    deadline = time.monotonic() + _CREATE_TIMEOUT_S
    while topic not in TopicPositions(run.bus).topics() and time.monotonic() < deadline:
        time.sleep(_CREATE_PAUSE_S)
    how_many = "" if partitions < 0 else f" with {partitions} partitions"
    run.tell(f"created topic {topic}{how_many}")


class BatchNotes:
    """Which batch was the last, and where the topic ended before the one that is being written."""

    def __init__(self, files: HadoopFiles, folder: str) -> None:
        self._files = files
        self._folder = folder
        names = [entry.name for entry in files.list(folder) if entry.name.startswith(_BATCH)]
        done = [_number(name) for name in names if name.endswith(_DONE)]
        self.last_batch = max(done, default=-1)

    def read(self, batch_id: int) -> Offsets | None:
        """What an earlier attempt noted, if there was one."""
        if not self._files.exists(self._name(batch_id, _PENDING)):
            return None
        offsets: Offsets = json.loads(self._files.read(self._name(batch_id, _PENDING)))
        return offsets

    def begin(self, batch_id: int, offsets: Offsets) -> None:
        """Note the end offsets before the first record is written."""
        self._files.write_whole(self._name(batch_id, _PENDING), json.dumps(offsets))

    def end(self, batch_id: int) -> None:
        """Note that the batch is written; notes of earlier ones go."""
        pending = self._name(batch_id, _PENDING)
        if not self._files.rename(pending, self._name(batch_id, _DONE)):
            self._files.write_whole(self._name(batch_id, _DONE), "{}")
        if self.last_batch >= 0:
            self._files.delete(self._name(self.last_batch, _DONE))
        self.last_batch = batch_id

    def _name(self, batch_id: int, ending: str) -> str:
        return f"{self._folder}/{_BATCH}{batch_id:0{_BATCH_DIGITS}}{ending}"


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


def _number(name: str) -> int:
    return int(name.removeprefix(_BATCH).partition(".")[0])
