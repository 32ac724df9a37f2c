"""A lake as a source: what `archive` wrote, as records again."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.client.bus import Bus
from headrace.client.positions import Position, PositionKind, parse_position
from headrace.errors import ConfigError
from headrace.pipelines.definition import RECORD_SCHEMA, Run, Source
from headrace.pipelines.errors import PipelineDefinitionError, SourceError
from headrace.pipelines.sinks.lake.sink import read_lake

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# Names in a lake are written in one way; the connector's own name differs here.
RENAMED = {"timestamp_type": "timestampType"}


@dataclass(frozen=True, kw_only=True)
class LakeSource(Source):
    """The records of a lake, of some topics or all, between two positions, half-open."""

    path: str
    topics: tuple[str, ...] = ()
    start: str | None = None
    end: str | None = None

    def __post_init__(self) -> None:
        for text in (self.start, self.end):
            _parse(text)

    @property
    def is_bounded_only(self) -> bool:
        """It is read once."""
        return True

    def describe(self) -> str:
        """A few words for people."""
        words = f"lake {self.path}"
        if self.topics:
            words += f", topic{'s' * (len(self.topics) > 1)} {', '.join(self.topics)}"
        if self.start is not None:
            words += f" from {self.start}"
        return words if self.end is None else f"{words} to {self.end}"

    def check(self, bus: Bus) -> None:
        """Raise SourceError if there is no such directory; others than local ones are not asked."""
        if ":" not in self.path and not Path(self.path).is_dir():
            raise SourceError(f"there is no lake at {self.path}: the directory does not exist")

    def batch(self, run: Run) -> "DataFrame":
        """The records, in no particular order."""
        from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

        rows = read_lake(run.spark, self.path).withColumnsRenamed(RENAMED)
        columns = [field.strip().partition(" ")[0] for field in _fields(RECORD_SCHEMA)]
        for name in columns:
            if name not in rows.columns:
                raise SourceError(
                    f"lake {self.path} has no column {name}, so it holds no records: "
                    "only what the pipeline archive wrote can be replayed"
                )
        if self.topics:
            rows = rows.where(F.col("topic").isin(*self.topics))
        for text, is_start in ((self.start, True), (self.end, False)):
            if condition := _bound(_parse(text), is_start=is_start):
                for each in condition:
                    rows = rows.where(each)
        return rows.select(*columns)

    def stream(self, run: Run) -> "DataFrame":
        """Has no meaning."""
        raise PipelineDefinitionError(f"lake {self.path} is read once; it cannot be followed")


def _fields(ddl: str) -> list[str]:
    """The columns of a list of them; commas inside a type are not theirs."""
    fields, depth = [""], 0
    for letter in ddl:
        depth += (letter == "<") - (letter == ">")
        if letter == "," and not depth:
            fields.append("")
        else:
            fields[-1] += letter
    return fields


def _bound(position: Position | None, *, is_start: bool) -> "list[Column]":
    from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

    if position is None or position.kind in (PositionKind.OLDEST, PositionKind.LATEST):
        is_empty = position is not None and (position.kind is PositionKind.LATEST) == is_start
        return [F.lit(False)] if is_empty else []
    if position.kind is PositionKind.OFFSET:
        offset = F.col("offset")
        return [offset >= position.value if is_start else offset < position.value]
    moment = F.timestamp_millis(F.lit(position.value))
    # The date too, so that whole directories are passed over.
    day = F.date_from_unix_date(F.lit(position.value // 86_400_000))
    if is_start:
        return [F.col("timestamp") >= moment, F.col("date") >= day]
    return [F.col("timestamp") < moment, F.col("date") <= day]


def _parse(text: str | None) -> Position | None:
    if text is None:
        return None
    try:
        position = parse_position(text, time.time_ns() // 1_000_000)
    except ConfigError as error:
        raise PipelineDefinitionError(f"{error.value!r} is no position; {error.wanted}") from None
    if position.kind is PositionKind.SHIFT:
        raise PipelineDefinitionError(
            f"{text} counts from an end, which a lake does not have; write an offset or a time"
        )
    return position
