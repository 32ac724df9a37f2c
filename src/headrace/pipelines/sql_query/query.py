"""One query over topics: finds them, shows each as a table, and reads what can matter of it.

Spark resolves the query first; each table it does not know is looked for among the topics, so
names that the query makes itself (`with a as …`) and files (``parquet.`path` ``) stay Spark's.
The query is planned twice: over the whole topics, for its bounds, and over the offsets they leave.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from headrace.client.bus import Bus
from headrace.pipelines.errors import PipelineDefinitionError, SourceError
from headrace.pipelines.json_shape import quoted
from headrace.pipelines.source import OffsetRanges, read_ranges
from headrace.pipelines.spark.session import silence_query_loggers
from headrace.pipelines.sql_query.bounds import EVERYTHING, Alternatives, bounds_of
from headrace.pipelines.sql_query.failures import (
    NOT_FOUND,
    TOO_MANY_PARTS,
    files_of,
    is_built_in,
    is_file,
    names_in,
    never_a_topic,
    sentence_of,
)
from headrace.pipelines.sql_query.narrowing import UPPER_MARGIN_MS, narrow
from headrace.pipelines.sql_query.statements import (
    called_java,
    forget_java_calls,
    refuse_statements,
)
from headrace.pipelines.topic_positions import TopicPositions, missing_topic
from headrace.pipelines.topic_sample import take_sample
from headrace.pipelines.topic_view import Shape, as_table, find_shape, needs_sample

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# SQL has a clause OFFSET, and WHERE may be an alias: `from t where offset in (1)` is both at once.
_SWALLOWED = re.compile(r"SubqueryAlias where$", re.M)


@dataclass
class TopicRead:
    """What a query reads of one topic; ranges are half-open."""

    topic: str
    whole: OffsetRanges
    shape: Shape
    ranges: OffsetRanges = field(default_factory=dict)

    @property
    def records(self) -> int:
        """How many offsets are read."""
        return sum(end - start for start, end in self.ranges.values())


@dataclass(frozen=True)
class Answer:
    """A frame that is ready to be read, and what reading it takes."""

    frame: "DataFrame"
    reads: list[TopicRead]


class TopicQuery:
    """Answers queries over the topics of a bus, each in a session of its own."""

    def __init__(
        self,
        spark: "SparkSession",
        bus: Bus,
        *,
        format: str = "auto",
        schemas: Mapping[str, str] | None = None,
    ) -> None:
        self._spark = spark
        self._session = spark
        self._bus = bus
        self._positions = TopicPositions(bus)
        self._format = format
        self._schemas = dict(schemas or {})
        silence_query_loggers()

    def answer(self, query: str, *, limit: int | None = None, is_bounded: bool = True) -> Answer:
        """Plan the query, at most `limit` rows of it; PipelineError says what is wrong with it.

        Without `is_bounded` the topics are read whole; the rows are the same.
        """
        self._session = self._spark.newSession()  # for its views alone
        if _SWALLOWED.search(refuse_statements(self._session, query)):
            raise PipelineDefinitionError(
                "'where' was read as another name for the table: the condition is missing, or "
                "begins with offset, which then needs backticks (where `offset` in …)"
            )
        forget_java_calls(self._session)
        reads = dict[str, TopicRead]()
        frame = self._resolve(query, reads)
        bounds = bounds_of(_optimised(frame)) if is_bounded and reads else {}
        for topic, read in reads.items():
            read.ranges = self._narrowed(read, bounds.get(topic, EVERYTHING))
            self._show(read)
        frame = self._limited(query, limit)
        if is_bounded and not _is_covered(bounds_of(_optimised(frame)), bounds):
            for read in reads.values():
                read.ranges = read.whole
                self._show(read)
            frame = self._limited(query, limit)
        return Answer(frame, list(reads.values()))

    def _limited(self, query: str, limit: int | None) -> "DataFrame":
        frame = self._session.sql(query)
        return frame if limit is None else frame.limit(limit)

    def _resolve(self, query: str, reads: dict[str, TopicRead]) -> "DataFrame":
        from pyspark.errors import AnalysisException

        while True:
            try:
                return self._session.sql(query)
            except AnalysisException as error:
                name = _missing_table(error)
                if name is None:
                    raise PipelineDefinitionError(_refusal(error)) from error
                read = self._find(name, query)
                if read.topic in reads:  # shown already, so it is not the view that is missing
                    raise PipelineDefinitionError(sentence_of(error)) from error
            reads[read.topic] = read
            self._show(read)

    def _find(self, name: list[str], query: str) -> TopicRead:
        if sentence := never_a_topic(name):
            raise PipelineDefinitionError(sentence)
        known = self._positions.topics()
        word = ".".join(name)
        same = [topic for topic in known if topic.lower() == word.lower()]
        if not same and is_file(name):
            raise PipelineDefinitionError(files_of(name))
        if not same:
            raise SourceError(missing_topic(word, known, self._bus.bootstrap))
        topic = word if word in same else same[0]
        if len(name) > 1:
            raise PipelineDefinitionError(f"a topic with dots needs backticks: `{topic}`")
        for other in same:
            if other != topic and other in query:
                raise PipelineDefinitionError(
                    f"{topic} and {other} differ only in case, which SQL does not see; "
                    "ask for one at a time"
                )
        partitions = [(topic, number) for number in known[topic]]
        oldest, ends = self._positions.oldest(partitions), self._positions.ends(partitions)
        whole = {each: (oldest[each], ends[each]) for each in partitions}
        schema = self._schemas.get(topic)
        sample = take_sample(self._bus, whole) if needs_sample(self._format, schema) else None
        return TopicRead(topic, whole, find_shape(self._format, schema, sample), whole)

    def _show(self, read: TopicRead) -> None:
        records = read_ranges(self._session, self._bus, read.ranges)
        as_table(records, read.shape).createOrReplaceTempView(quoted(read.topic))

    def _narrowed(self, read: TopicRead, alternatives: Alternatives) -> OffsetRanges:
        has_broker_times = False
        if any(bounds.to_ms is not None for bounds in alternatives):
            stamped = self._positions.has_times_in_order([read.topic])
            # The setting tells of new records; the oldest may have come before it was made.
            has_broker_times = (
                stamped.get(read.topic, False)
                and take_sample(self._bus, read.whole).has_broker_times
            )
        return narrow(self._positions, read.whole, alternatives, has_broker_times=has_broker_times)


def _optimised(frame: "DataFrame") -> Any:
    return frame._jdf.queryExecution().optimizedPlan()


def _is_covered(now: Mapping[str, Alternatives], before: Mapping[str, Alternatives]) -> bool:
    """Whether the offsets found for the bounds `before` have all of those of `now`.

    The clock goes on between two plans, and with it the meaning of now().
    """
    return all(
        any(bounds.is_inside(other, UPPER_MARGIN_MS) for other in before.get(topic, EVERYTHING))
        for topic, alternatives in now.items()
        for bounds in alternatives
    )


def _refusal(error: Any) -> str:
    parameters = error.getMessageParameters() or {}
    routine = parameters.get("routineName") or parameters.get("identifier", "")
    return called_java(routine) or sentence_of(error)


def _missing_table(error: Any) -> list[str] | None:
    parameters = error.getMessageParameters() or {}
    if error.getCondition() == NOT_FOUND:
        return names_in(parameters["relationName"])
    if error.getCondition() == TOO_MANY_PARTS:
        name = names_in(parameters["identifier"])
        is_java = is_built_in(name) and called_java(name[-1])  # a function, not a table
        return None if is_java else name
    return None
