"""What a pipeline is: a source, a decoder, a pure function of frames, and sinks.

A definition does nothing by itself: it holds no session and no connection, so it can be listed,
shown and tested without either. `runner` brings it to life.

The frame a decoder gives has the fields of its schema and one struct more, `_record`: where the
row came from. A transform may use it (`_record.timestamp`), keep it or drop it. A sink that needs
the order of the log, as upserts do, wants it kept.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from headrace.client.bus import Bus
from headrace.pipelines.spans import Batch, Written

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# The columns of a record as a source gives them; the connector's own, with headers.
RECORD_SCHEMA = (
    "key binary, value binary, topic string, partition int, offset bigint, "
    "timestamp timestamp, timestampType int, headers array<struct<key: string, value: binary>>"
)
# What is in `_record` beside the decoded fields.
RECORD_COLUMN = "_record"
RECORD_FIELDS = (
    "key binary, topic string, partition int, offset bigint, timestamp timestamp, "
    "headers array<struct<key: string, value: binary>>, is_tombstone boolean"
)
# Null for a row that could be decoded; a decoder that cannot fail leaves the column out.
ERROR_COLUMN = "_error"

Transform = Callable[["DataFrame"], "DataFrame"]


def unchanged(rows: "DataFrame") -> "DataFrame":
    """The transform of a pipeline that has none."""
    return rows


@dataclass(frozen=True, slots=True)
class Option:
    """Something a user may set with `--option NAME=VALUE`."""

    name: str
    help: str
    default: str | None = None
    is_required: bool = False
    # A value for the shortest command, where the option is needed unless another one is changed.
    example: str | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """What a source and a sink may use while a pipeline runs."""

    spark: "SparkSession"
    bus: Bus
    name: str
    # Of this checkpoint: under it a sink knows what it has been given. Survives restarts.
    app_id: str
    # One sentence to the user, on the live view and in the run's log.
    tell: Callable[[str], None] = print
    # Where a sink may keep notes that survive a restart; None: the run has no checkpoint.
    checkpoint: str | None = None
    # Whether Spark goes on from the checkpoint, so that a source's start no longer counts.
    is_resumed: Callable[[], bool] = lambda: False
    # Of a run that begins anew: where topics go on, {topic: {partition: offset}}; others are read
    # from the start, wherever the source says to begin.
    kept_offsets: Mapping[str, Mapping[str, int]] | None = None
    # Why this run may not write to a topic, in one sentence: it reads it. Travels to the workers.
    refuse_topic: Callable[[str], str | None] | None = None


class Source(ABC):
    """Where records come from, as frames of RECORD_SCHEMA."""

    @abstractmethod
    def describe(self) -> str:
        """A few words for people: `topics orders, payments from the oldest`."""

    def describe_resumed(self) -> str:
        """The same for a run that goes on where another ended, wherever that one began."""
        return self.describe()

    @abstractmethod
    def check(self, bus: Bus) -> None:
        """Raise PipelineError if it cannot be read: no broker, no topic, positions expired."""

    @abstractmethod
    def batch(self, run: Run) -> "DataFrame":
        """All of it, once."""

    @property
    def is_bounded_only(self) -> bool:
        """Whether `stream` has no meaning."""
        return False

    @abstractmethod
    def stream(self, run: Run) -> "DataFrame":
        """All of it, and what comes later."""


class Decoder(Protocol):
    """How bytes become fields."""

    @property
    def can_fail(self) -> bool:
        """Whether `decode` adds `_error`."""
        ...

    def describe(self) -> str:
        """A few words for people: `JSON with sensor string, celsius double`."""
        ...

    def decode(self, records: "DataFrame") -> "DataFrame":
        """Turn records into fields, `_record` and, if it can fail, `_error`; loses no row."""
        ...

    def explain(self, value: bytes | None) -> str:
        """Say in one sentence why `value` could not be decoded. Runs on Spark's workers."""
        ...


class OpenSink(ABC):
    """A sink during one run. Used by one thread."""

    def written(self) -> Written:
        """What it has of this app's batches; nothing if it keeps no notes.

        A batch, or the part of one, that is in here is not given to `write`.
        """
        return Written()

    @abstractmethod
    def write(self, rows: "DataFrame", batch: Batch) -> bool:
        """Write rows and, in one step with them, the note `written().after(batch)`.

        False if it turned out that they were there: an earlier attempt was slow to arrive.
        """

    def between_batches(self) -> None:  # noqa: B027 - most sinks have nothing to do
        """Do what keeps the sink in shape: compaction. Called after a batch is done."""

    def close(self) -> None:  # noqa: B027
        """Let go of connections."""


class Sink(ABC):
    """Where rows go."""

    @abstractmethod
    def describe(self) -> str:
        """A few words for people, without passwords: `table readings in sqlite:///r.db`."""

    def identity(self) -> str:
        """What tells it from another sink wherever the command is typed; no passwords."""
        return self.describe()

    def place(self) -> str:
        """What no other sink of a run may share with it, however it writes there."""
        return self.identity()

    @property
    def is_trial(self) -> bool:
        """Whether it only shows rows: a run that writes nowhere else keeps no position."""
        return False

    @abstractmethod
    def open(self, run: Run) -> OpenSink:
        """Connect, create what is missing, migrate; raises SinkError with the fix."""


@dataclass(frozen=True, kw_only=True)
class Pipeline:
    """One pipeline, ready to run."""

    name: str
    summary: str
    source: Source
    decoder: Decoder
    sinks: tuple[Sink, ...]
    transform: Transform = unchanged
    # Where records go that cannot be decoded; None: `<run>.dead-letters`.
    dead_letter_topic: str | None = None
    options: dict[str, str] = field(default_factory=dict)
