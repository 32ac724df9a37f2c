"""The lake as a sink: where it is, in which format, and how its files are written."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.pipelines.definition import OpenSink, Option, Run, Sink
from headrace.pipelines.errors import PipelineDefinitionError, SinkError, SourceError
from headrace.pipelines.sinks.lake.write_options import (
    COMPRESSIONS,
    DEFAULT_COMPRESSION,
    MAX_ROWS_PER_FILE,
    WriteOptions,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FORMATS = ("parquet", "delta")
# What `--option` may say of a lake; a pipeline that writes one offers them.
LAKE_OPTIONS = (
    Option("compact", "merge small files between batches: auto or off", "auto"),
    Option("compression", f"of the lake's files: {', '.join(COMPRESSIONS)}", DEFAULT_COMPRESSION),
    Option("rows_per_file", "begin a new file after so many rows", str(MAX_ROWS_PER_FILE)),
    Option("time", "column whose hour decides the directory (default: the record's timestamp)"),
)


@dataclass(frozen=True)
class LakeSink(Sink):
    """Parquet or Delta files by date and hour (UTC), each row of a batch in them once."""

    path: str
    format: str = "parquet"
    options: WriteOptions = field(default_factory=WriteOptions)

    def __post_init__(self) -> None:
        if self.format not in FORMATS:
            raise PipelineDefinitionError(
                f"a lake cannot have the format {self.format}; write {' or '.join(FORMATS)}"
            )
        if not self.path:
            raise PipelineDefinitionError(
                f"{self.format}: names no directory; write {self.format}:PATH"
            )
        if self.options.compression not in COMPRESSIONS:
            raise PipelineDefinitionError(
                f"compression={self.options.compression}: write one of {', '.join(COMPRESSIONS)}"
            )

    def describe(self) -> str:
        """A few words for people."""
        return f"{self.format} lake {self.path}"

    def identity(self) -> str:
        """The same, whatever directory the command was typed in."""
        return f"{self.format} {self.place()}"

    def place(self) -> str:
        """The directory: of two formats one would take the other's files for its own."""
        is_local = ":" not in self.path
        return f"lake {Path(self.path).absolute() if is_local else self.path}"

    def open(self, run: Run) -> OpenSink:
        """Finish what an earlier run left, and be ready for a batch."""
        if self.format == "delta":
            from headrace.pipelines.sinks.lake.delta import OpenDeltaLake

            return OpenDeltaLake(run, absolute(run.spark, self.path), self.options)
        from headrace.pipelines.sinks.lake.parquet import OpenParquetLake

        return OpenParquetLake(run, absolute(run.spark, self.path), self.options)


def from_uri(uri: str, options: Mapping[str, str]) -> LakeSink:
    """Read `parquet:PATH` or `delta:PATH`; the path may itself be a URI."""
    format_name, _, path = uri.partition(":")
    return LakeSink(path, format_name, write_options(options))


def write_options(options: Mapping[str, str]) -> WriteOptions:
    """Read `--option`s of a lake; other names are not looked at."""
    compact = options.get("compact", "auto")
    if compact not in ("auto", "off"):
        raise PipelineDefinitionError(f"compact={compact}: write auto or off")
    rows = options.get("rows_per_file", str(MAX_ROWS_PER_FILE))
    if not rows.isdecimal() or int(rows) < 1:
        raise PipelineDefinitionError(f"rows_per_file={rows}: write a number of 1 or more")
    return WriteOptions(
        time_column=options.get("time"),
        compression=options.get("compression", DEFAULT_COMPRESSION),
        max_rows_per_file=int(rows),
        is_compacting=compact == "auto",
    )


def absolute(spark: "SparkSession", path: str) -> str:
    """The whole URI of a path, so that workers elsewhere do not resolve it in their own way."""
    from headrace.pipelines.hadoop_files import HadoopFiles

    return HadoopFiles(spark, path).path()


def read_lake(spark: "SparkSession", path: str) -> "DataFrame":
    """A lake as a frame, whichever its format; SourceError if there is none."""
    from headrace.pipelines.hadoop_files import HadoopFiles
    from headrace.pipelines.sinks.lake.delta_table import open_table
    from headrace.pipelines.sinks.lake.hours import with_hour_fields
    from headrace.pipelines.sinks.lake.lake_schema import LakeSchema
    from headrace.pipelines.sinks.lake.layout import is_lake

    if open_table(spark, absolute(spark, path)):
        return spark.read.format("delta").load(path)
    files = HadoopFiles(spark, path)
    if not is_lake(files):
        raise SourceError(f"there is no lake at {path}; a lake has directories named date=…")
    noted = LakeSchema(spark, files)
    try:
        schema = with_hour_fields(noted.read(), is_case_sensitive=noted.is_case_sensitive)
    except SinkError as error:
        raise SourceError(str(error)) from error
    return spark.read.schema(schema).parquet(path)


def compact_lake(spark: "SparkSession", path: str) -> tuple[int, int]:
    """Merge all small files of a lake now; the numbers of files merged and made."""
    from uuid import uuid4

    from headrace.pipelines.hadoop_files import HadoopFiles
    from headrace.pipelines.sinks.lake import delta, notes, staging
    from headrace.pipelines.sinks.lake.compaction import Compactor
    from headrace.pipelines.sinks.lake.delta_table import open_table

    path = absolute(spark, path)
    if open_table(spark, path):
        return delta.optimize(spark, path)
    files = HadoopFiles(spark, path)
    app_id = f"compact-{uuid4().hex[:12]}"
    notes.finish_abandoned(files, app_id)
    staging.clear_abandoned(files)
    result = Compactor(spark, files, app_id, DEFAULT_COMPRESSION).compact_all()
    # Only now: after a failure a note may still speak of what is staged.
    staging.clear_own(files, app_id)
    files.delete(f"{notes.COMMITS}/{app_id}")
    return result
