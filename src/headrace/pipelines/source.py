"""Topics as a source of records, through Spark's own Kafka connector, of either engine.

Positions become offsets here, asked of the broker by librdkafka, so that Spark is only given
offsets that exist. A batch names the first and last offset of every partition: reading it again
gives the same rows for as long as the broker keeps them.
"""

import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from headrace.client.bus import ISOLATION_LEVEL, Bus
from headrace.client.librdkafka import Partition
from headrace.client.positions import LATEST, OLDEST, Position, PositionKind, parse_position
from headrace.errors import ConfigError
from headrace.pipelines.dead_letters.letter import SUFFIX as LETTERS_SUFFIX
from headrace.pipelines.definition import RECORD_SCHEMA, Run, Source
from headrace.pipelines.errors import PipelineDefinitionError, SourceError
from headrace.pipelines.topic_positions import TopicPositions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Below 250,000 rows the fixed cost of a batch shows; far above, a batch of an SQL sink, which
# passes through the driver, no longer fits in its memory.
DEFAULT_MAX_ROWS_PER_BATCH = 500_000
# How Spark's consumer reads; a user's own properties win. The connector asks the broker for a
# partition's bounds, twice, around every poll: with Kafka's 500 records a poll those questions cost
# a broker more than the records, and half of the reader's rate. A poll is bounded by its bytes.
_CONSUMER = {
    "kafka.max.poll.records": "20000",
    "kafka.max.partition.fetch.bytes": str(4 * 1024 * 1024),
    # Behind the last record of its range the consumer at once asks for more, which is not there
    # yet; the question for the bounds waits behind that one. Nobody is asked between batches.
    "kafka.fetch.max.wait.ms": "50",
}
FAIL, GO_ON = "fail", "go-on"

# First and last offset of each partition, half-open.
OffsetRanges = dict[Partition, tuple[int, int]]


@dataclass(frozen=True, kw_only=True)
class TopicSource(Source):
    """Topics by name or by a pattern. None in a field means: not said, take the default."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None  # a regular expression for whole names
    start: str | None = None  # a position; None: oldest
    end: str | None = None  # a position; None: what is there now, for a stream: never
    max_rows_per_batch: int | None = None  # of a stream; None: DEFAULT_MAX_ROWS_PER_BATCH
    min_partitions: int | None = None  # tasks to split the partitions into
    on_data_loss: str | None = None  # fail or go-on; None: fail

    def __post_init__(self) -> None:
        if isinstance(self.topics, str):
            raise PipelineDefinitionError(
                f"topics={self.topics!r} is one text; write topics=({self.topics!r},)"
            )
        object.__setattr__(self, "topics", tuple(dict.fromkeys(self.topics)))
        if self.topics and self.pattern is not None:
            raise PipelineDefinitionError("a source has topics or a pattern, not both")
        if self.on_data_loss not in (None, FAIL, GO_ON):
            raise PipelineDefinitionError(
                f"on_data_loss={self.on_data_loss!r}: write {FAIL} or {GO_ON}"
            )
        for name in ("max_rows_per_batch", "min_partitions"):
            number = getattr(self, name)
            if number is not None and number < 1:
                raise PipelineDefinitionError(f"{name}={number}: write 1 or more")
        for text in (self.start, self.end):
            if text is not None:
                _parse(text)
        if self.pattern is not None:
            _compile(self.pattern)

    @property
    def is_empty(self) -> bool:
        """Whether no topic was named."""
        return not self.topics and self.pattern is None

    @property
    def is_bounded_only(self) -> bool:
        """Whether it has an end: Spark's streams have none."""
        return self.end is not None

    def over(self, own: "TopicSource") -> "TopicSource":
        """What is said here, and for the rest what `own` says."""
        chosen = {
            field.name: getattr(self if getattr(self, field.name) is not None else own, field.name)
            for field in fields(self)
        }
        named = own if self.is_empty else self
        return TopicSource(**{**chosen, "topics": named.topics, "pattern": named.pattern})

    def describe(self) -> str:
        """A few words for people: `topics orders, payments from the oldest`."""
        words = f"{self._names()} from {_with_article(self.start or 'oldest')}"
        return f"{words} to {_with_article(self.end)}" if self.end is not None else words

    def describe_resumed(self) -> str:
        """`topics orders, payments from where the run before ended`."""
        return f"{self._names()} from where the run before ended"

    def _names(self) -> str:
        if self.pattern is not None:
            return f"topics like {self.pattern}"
        if not self.topics:
            return "no topics yet"
        return f"topic{'s' * (len(self.topics) > 1)} {', '.join(self.topics)}"

    def found(self, bus: Bus) -> list[str]:
        """The names of the topics there are; SourceError if there is none, or one is missing."""
        partitions = self._partitions(TopicPositions(bus), bus)
        return list(dict.fromkeys(topic for topic, _ in partitions))

    def check(self, bus: Bus) -> None:
        """Raise SourceError if it cannot be read: no broker, no topic, positions expired."""
        positions = TopicPositions(bus)
        partitions = self._partitions(positions, bus)
        self._starts(positions, partitions, is_stream=self.end is None)

    def check_resumed(self, bus: Bus, offsets: Mapping[str, Mapping[str, int]]) -> None:
        """Raise SourceError if a checkpoint's offsets, as Spark writes them, are not there."""
        positions = TopicPositions(bus)
        known = positions.topics(has_internal=True)
        for topic in offsets:
            if topic not in known and not self.may_lose_topics:
                ways = "start with a new --checkpoint"
                if self.pattern is not None:
                    ways += ", or go on without it (--on-data-loss go-on)"
                raise SourceError(
                    f"the checkpoint has read topic {topic}, which is no longer at "
                    f"{bus.bootstrap}; {ways}"
                )
        wanted = {
            (topic, int(number)): offset
            for topic, numbers in offsets.items()
            for number, offset in numbers.items()
            if int(number) in known.get(topic, ())
        }
        if self._is_strict:
            _check_inside(wanted, positions, "the checkpoint's next offset", is_end_needed=True)

    def batch(self, run: Run) -> "DataFrame":
        """All of it, once: from start to end, or to where things end now."""
        ranges = self.ranges(run.bus)
        return read_ranges(run.spark, run.bus, ranges, self._batch_options())

    def ranges(self, bus: Bus) -> OffsetRanges:
        """The offsets a batch reads, half-open; an empty range is (n, n)."""
        positions = TopicPositions(bus)
        partitions = self._partitions(positions, bus)
        starts = self._starts(positions, partitions, is_stream=False)
        ends = positions.ends(partitions)
        if self.end is not None:
            wanted = _resolve(_parse(self.end), positions, partitions)
            ends = {each: min(wanted[each], ends[each]) for each in partitions}
        return {each: (min(starts[each], ends[each]), ends[each]) for each in partitions}

    def stream(self, run: Run) -> "DataFrame":
        """All of it, and what comes later."""
        if self.end is not None:
            raise PipelineDefinitionError(
                f"a source with an end ({self.end}) is read once; a stream has no end"
            )
        if self.pattern is not None:
            who = {"subscribePattern": java_pattern(self.pattern)}
        else:
            who = {"subscribe": ",".join(self.topics)}
        return (
            run.spark.readStream.format("kafka")
            .options(
                **_consumer_options(run.bus),
                **who,
                **self._batch_options(),
                # A position that Spark no longer looks at may have expired since.
                startingOffsets="earliest" if run.is_resumed() else self._stream_start(run),
                includeHeaders="true",
                maxOffsetsPerTrigger=str(self.max_rows_per_batch or DEFAULT_MAX_ROWS_PER_BATCH),
            )
            .load()
        )

    @property
    def may_lose_topics(self) -> bool:
        """Whether it goes on without a topic: one of several may go; of those that were named, a
        source cannot do without any."""
        return self.pattern is not None and not self._is_strict

    @property
    def _is_strict(self) -> bool:
        return self.on_data_loss != GO_ON

    def _batch_options(self) -> dict[str, str]:
        options = {"failOnDataLoss": str(self._is_strict).lower()}
        if self.min_partitions is not None:
            options["minPartitions"] = str(self.min_partitions)
        return options

    def _stream_start(self, run: Run) -> str:
        bus, kept = run.bus, run.kept_offsets
        position = _parse(self.start or "oldest")
        if kept is not None:
            positions = TopicPositions(bus)
            oldest = positions.oldest(self._partitions(positions, bus))
            return offsets_json(
                {
                    (topic, number): max(kept.get(topic, {}).get(str(number), 0), offset)
                    for (topic, number), offset in oldest.items()
                }
            )
        if position == OLDEST:
            return "earliest"
        if position == LATEST:
            return "latest"
        positions = TopicPositions(bus)
        starts = self._starts(positions, self._partitions(positions, bus), is_stream=True)
        return offsets_json(starts)

    def _partitions(self, positions: TopicPositions, bus: Bus) -> list[Partition]:
        if self.is_empty:
            raise PipelineDefinitionError("the source has no topics; name them or give a pattern")
        if self.pattern is None:
            return positions.partitions(self.topics)
        known = positions.topics()
        found = [name for name in sorted(known) if matches(self.pattern, name)]
        if not found:
            raise SourceError(
                f"no topic at {bus.bootstrap} matches {self.pattern}; "
                "'headrace topics list' shows those there are"
            )
        return [(name, number) for name in found for number in known[name]]

    def _starts(
        self, positions: TopicPositions, partitions: list[Partition], *, is_stream: bool
    ) -> dict[Partition, int]:
        """Where to begin; an offset that is gone is an error unless losses are to be passed over.

        An offset that is not there yet is an empty range of a batch; a stream that began at the
        end instead would give what was not asked for.
        """
        position = _parse(self.start or "oldest")
        wanted = _resolve(position, positions, partitions)
        if position.kind is PositionKind.OFFSET and self._is_strict:
            _check_inside(wanted, positions, "the start", is_end_needed=is_stream)
        oldest, ends = positions.oldest(partitions), positions.ends(partitions)
        return {each: min(max(wanted[each], oldest[each]), ends[each]) for each in partitions}


def matches(pattern: str, topic: str) -> bool:
    """Whether a source with this pattern reads a topic.

    Letters about bad records are none of its records, and those of its own would never end: they
    are read only by a source that names their topic, or a pattern that spells its ending out.
    """
    if topic.endswith(LETTERS_SUFFIX) and not _is_naming_letters(pattern):
        return False
    return _compile(pattern).fullmatch(topic) is not None


def java_pattern(pattern: str) -> str:
    """The same as `matches` in one expression, for Spark."""
    if _is_naming_letters(pattern):
        return pattern
    return rf"(?!.*{re.escape(LETTERS_SUFFIX)}$)(?:{pattern})"


def _is_naming_letters(pattern: str) -> bool:
    return LETTERS_SUFFIX.strip(".") in pattern


def _consumer_options(bus: Bus) -> dict[str, str]:
    """What Spark's consumer gets; the user's own properties win."""
    return {**_CONSUMER, f"kafka.{ISOLATION_LEVEL}": bus.isolation_level, **bus.spark_options()}


def read_ranges(
    spark: "SparkSession", bus: Bus, ranges: OffsetRanges, options: Mapping[str, str] | None = None
) -> "DataFrame":
    """Exactly these offsets, as records of RECORD_SCHEMA."""
    held = {each: bounds for each, bounds in ranges.items() if bounds[0] < bounds[1]}
    if not held:
        # Made in Java: an empty list of Python's would start Python workers to be read.
        nothing = f"cast(null as struct<{RECORD_SCHEMA}>) as record"
        return spark.range(0).selectExpr(nothing).select("record.*")
    assigned = dict[str, list[int]]()
    for topic, number in held:
        assigned.setdefault(topic, []).append(number)
    return (
        spark.read.format("kafka")
        .options(
            **_consumer_options(bus),
            assign=json.dumps(assigned),
            startingOffsets=offsets_json({each: start for each, (start, _) in held.items()}),
            endingOffsets=offsets_json({each: end for each, (_, end) in held.items()}),
            includeHeaders="true",
            **(options or {}),
        )
        .load()
    )


def offsets_json(offsets: Mapping[Partition, int]) -> str:
    """Offsets as Spark writes and reads them: `{"orders": {"0": 120}}`."""
    by_topic = dict[str, dict[str, int]]()
    for (topic, number), offset in sorted(offsets.items()):
        by_topic.setdefault(topic, {})[str(number)] = offset
    return json.dumps(by_topic)


def _resolve(
    position: Position, positions: TopicPositions, partitions: list[Partition]
) -> dict[Partition, int]:
    """The offsets a position means, whether or not the partition has them."""
    if position.kind is PositionKind.OFFSET:
        return dict.fromkeys(partitions, position.value)
    if position.kind is PositionKind.TIME:
        return positions.at(position.value, partitions)
    # A shift counts from the end it points away from: +10 leaves ten out, -10 is the last ten.
    is_from_oldest = position.kind is PositionKind.OLDEST or position.value > 0
    find: Callable[[list[Partition]], dict[Partition, int]] = (
        positions.oldest if is_from_oldest else positions.ends
    )
    return {each: max(offset + position.value, 0) for each, offset in find(partitions).items()}


def _check_inside(
    wanted: Mapping[Partition, int], positions: TopicPositions, whose: str, *, is_end_needed: bool
) -> None:
    oldest, ends = positions.oldest(wanted), positions.ends(wanted)
    for partition, offset in sorted(wanted.items()):
        topic, number = partition
        where = f"partition {number} of {topic}"
        if offset < oldest[partition]:
            raise SourceError(
                f"{whose}, {offset}, has expired: {where} begins at {oldest[partition]}; "
                f"start from {oldest[partition]} or oldest, or pass over the loss "
                "(--on-data-loss go-on)"
            )
        if is_end_needed and offset > ends[partition]:
            raise SourceError(
                f"{whose}, {offset}, is not there yet: {where} ends at {ends[partition]}; "
                "start from latest, or with a new checkpoint if the topic was made anew"
            )


def _parse(text: str) -> Position:
    try:
        return parse_position(text, time.time_ns() // 1_000_000)
    except ConfigError as error:
        raise PipelineDefinitionError(f"{error.value!r} is no position; {error.wanted}") from None


def _with_article(text: str) -> str:
    return f"the {text}" if text in ("oldest", "latest") else text


def _compile(pattern: str) -> re.Pattern[str]:
    # Java's and Python's expressions agree on all that topic names need.
    try:
        return re.compile(pattern)
    except re.error as error:
        raise PipelineDefinitionError(
            f"{pattern!r} is no regular expression ({error}); write it so that both Java and "
            "Python can read it, for example orders\\..*"
        ) from None
