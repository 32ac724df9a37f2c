"""`headrace sql`: a query over topics, as tables that Spark reads."""

import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headrace.cli.assignments import parse_pairs
from headrace.cli.connection import Connection, connects
from headrace.cli.endings import CommandError, UsageError, tell
from headrace.cli.terminal import Json, print_heading, print_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headrace.pipelines.sql_query.query import Answer, TopicRead

EPILOG = 'Example: headrace sql "select partition, count(*) from orders group by partition"'
# As many as a person looks through; programs get all.
PRETTY_LIMIT = 100
_STDIN = "-"
# A query over files alone needs no broker; any other is refused before Spark starts without one.
_FILES = re.compile(r"\b(parquet|delta|json|csv|orc|text|avro)\s*\.\s*`", re.IGNORECASE)
_TABLES = re.compile(r"\b(from|join|describe)\b", re.IGNORECASE)


@connects
def sql(
    query: Annotated[
        str | None,
        typer.Argument(help="The query; - reads it from standard input.", show_default=False),
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--file", "-f", metavar="FILE", help="Read the query from here.")
    ] = None,
    is_json: Json = False,
    is_csv: Annotated[bool, typer.Option("--csv", help="Comma-separated, with a header.")] = False,
    limit: Annotated[
        int | None,
        typer.Option(
            metavar="ROWS",
            min=0,
            help=f"At most so many rows, 0 for all; a table ends at {PRETTY_LIMIT} unless told.",
            show_default=False,
        ),
    ] = None,
    format: Annotated[
        str,
        typer.Option(
            help="What values are: auto, json, text, binary, or with --schema tsv, csv, avro, xml."
        ),
    ] = "auto",
    schema: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TOPIC=DDL", help="The fields of a topic, instead of those a sample shows."
        ),
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show which offsets would be read, and read none.")
    ] = False,
    conf: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="A setting of Spark; may be repeated."),
    ] = None,
    *,
    connection: Connection,
) -> None:
    """Ask topics with SQL: each is a table with key, value, timestamp, partition, offset, headers
    and topic, and the fields of its JSON values.

    Of each topic only the offsets are read that the conditions on timestamp, offset and partition
    leave. Names with dots or dashes go in backticks.
    """
    text = _read_query(query, file)
    if is_json and is_csv:
        raise UsageError("--json or --csv, not both")
    schemas = parse_pairs("--schema", schema or (), "TOPIC=DDL", may_be_empty=False)
    settings = parse_pairs("--conf", conf or (), may_be_empty=False)
    if limit is None and not (is_json or is_csv):
        limit = PRETTY_LIMIT
    from headrace.pipelines.sql_query.query import TopicQuery
    from headrace.pipelines.topic_positions import TopicPositions

    bus = connection.bus_for_java()
    if _TABLES.search(text) and not _FILES.search(text):
        TopicPositions(bus, connection.timeout_s).topics()
    # Inside the session too: Spark's exceptions cannot be read once it is closed.
    with _spark_errors(), _session(settings) as spark, _spark_errors():
        topics = TopicQuery(spark, bus, format=format, schemas=schemas)
        # One row more than wanted tells whether there are more.
        answer = topics.answer(text, limit=limit + 1 if limit else None)
        if explain:
            _print_reads(answer.reads, is_json=is_json)
        else:
            _print_answer(answer, limit or None, is_json=is_json, is_csv=is_csv)


def _print_answer(answer: "Answer", limit: int | None, *, is_json: bool, is_csv: bool) -> None:
    from headrace.cli.sql.output import (
        print_csv,
        print_json_lines,
        print_pretty,
        with_times_as_text,
    )

    frame = with_times_as_text(answer.frame)
    schema = frame.schema
    if limit is None and (is_json or is_csv):
        rows: Any = frame.toLocalIterator()  # one part at a time: any number of rows
        has_more = False
    else:
        rows = frame.collect()
        has_more = limit is not None and len(rows) > limit
        rows = rows[:limit]
    if is_json:
        print_json_lines(schema, rows)
    elif is_csv:
        print_csv(schema, rows)
    else:
        print_pretty(schema, rows)
    if has_more:
        sys.stdout.flush()
        tell(f"there are more than these {limit} rows; --limit 0 shows all")


def _print_reads(reads: "list[TopicRead]", *, is_json: bool) -> None:
    from headrace.cli.terminal import print_json

    for read in reads:
        rows = [
            (number, *read.ranges[topic, number], *read.whole[topic, number])
            for topic, number in sorted(read.whole)
        ]
        columns = ("partition", "from", "to", "oldest", "end")
        if is_json:
            partitions = [dict(zip(columns, row, strict=True)) for row in rows]
            print_json({"topic": read.topic, "shape": read.shape.describe(), "reads": partitions})
            continue
        whole = sum(end - start for start, end in read.whole.values())
        print_heading(f"{read.topic}: {read.records} of {whole} offsets; {read.shape.describe()}")
        print_table(columns, rows, numbers=columns)


@contextmanager
def _session(settings: dict[str, str]) -> "Iterator[SparkSession]":
    from headrace.pipelines.spark.session import close_session, open_session

    # Spark makes a directory for tables that nobody creates here: not where the user stands.
    with tempfile.TemporaryDirectory(prefix="headrace-sql-") as warehouse:
        conf = {"spark.sql.warehouse.dir": warehouse, **settings}
        spark = open_session("headrace sql", is_quick=True, conf=conf)
        try:
            yield spark
        finally:
            close_session(spark)


@contextmanager
def _spark_errors() -> Iterator[None]:
    """What Spark raises ends the command in a sentence."""
    try:
        yield
    except Exception as error:
        if not type(error).__module__.startswith(("pyspark.", "py4j.")):
            raise
        raise CommandError(_spark_sentence(error)) from error


def _spark_sentence(error: Exception) -> str:
    """A row that broke the query, such as a division by zero; or that Spark itself failed."""
    from pyspark.errors import PySparkException

    from headrace.pipelines.spark.faults import sentence_of
    from headrace.pipelines.spark.output import default_log_file
    from headrace.pipelines.sql_query import failures

    if isinstance(error, PySparkException) and error.getCondition():
        return failures.sentence_of(error)
    return str(sentence_of(error, default_log_file()))


def _read_query(query: str | None, file: Path | None) -> str:
    if (query is None) == (file is None):
        raise UsageError("give a query, or --file with one")
    if file is not None:
        try:
            query = file.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or error
            raise UsageError(f"--file {file}: {reason}") from error
    elif query == _STDIN:
        query = sys.stdin.read()
    text = (query or "").strip().removesuffix(";").strip()
    if not text:
        raise UsageError("the query is empty")
    return text
