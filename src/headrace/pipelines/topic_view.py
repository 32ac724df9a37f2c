"""A topic as a table: the record's columns and the fields of its value.

`headrace sql` and `read_topic` show a topic in the same way. Text is text where its bytes are
UTF-8; other bytes are shown in hexadecimal behind `0x`, so that no row is lost.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.client.addresses import DEFAULT_BOOTSTRAP
from headrace.client.bus import Bus
from headrace.pipelines.decoders.ddl import parse_ddl
from headrace.pipelines.definition import RECORD_COLUMN, Decoder, Run
from headrace.pipelines.errors import PipelineDefinitionError
from headrace.pipelines.json_shape import quoted, shape_of
from headrace.pipelines.source import OffsetRanges, TopicSource, read_ranges
from headrace.pipelines.topic_sample import TopicSample, take_sample

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RECORD_NAMES = ("key", "value", "timestamp", "partition", "offset", "headers", "topic")
FORMATS = ("auto", "json", "text", "binary", "tsv", "csv", "avro", "xml")
# A field of the value that is called like a column of the record gets this before its name.
CLASH_PREFIX = "value_"
_FIELDS = "_fields"
_BY_DECODER = ("tsv", "csv", "avro", "xml")


@dataclass(frozen=True)
class Shape:
    """How a topic's values are read: a format, and the DDL of its fields if it has any."""

    format: str  # json, text, binary, or one of the decoders'
    schema: str | None = None

    def describe(self) -> str:
        """A few words for people: `json with id bigint`."""
        return f"{self.format} with {self.schema}" if self.schema else self.format


def find_shape(format: str, schema: str | None, sample: TopicSample | None) -> Shape:
    """The shape that was asked for, as far as it was; the rest by the sample."""
    if format not in FORMATS:
        raise PipelineDefinitionError(f"format {format!r}: write {', '.join(FORMATS)}")
    if format in _BY_DECODER and schema is None:
        raise PipelineDefinitionError(f"format {format} needs a schema; only JSON tells its own")
    if schema is not None and format in ("auto", "json"):
        parse_ddl(schema)  # in our words, before Spark says it in its own
    if schema is not None:
        return Shape("json" if format == "auto" else format, schema)
    if format in ("text", "binary") or sample is None:
        return Shape("text" if format == "auto" else format)
    objects = sample.objects()
    if format == "json" or len(objects) * 2 > len(sample.values):
        return Shape("json", shape_of(objects))
    return Shape("text" if sample.is_text else "binary")


def needs_sample(format: str, schema: str | None) -> bool:
    """Whether the shape cannot be told without looking at records."""
    return schema is None and format in ("auto", "json")


def as_table(records: "DataFrame", shape: Shape) -> "DataFrame":
    """Records of RECORD_SCHEMA with readable columns and the fields of their values."""
    if shape.format in _BY_DECODER:
        return _by_decoder(records, shape)
    value = "value" if shape.format == "binary" else f"{_text('value')} as value"
    columns = [value if name == "value" else _column(name, name) for name in RECORD_NAMES]
    if shape.format != "json" or shape.schema is None:
        return records.selectExpr(*columns)
    parsed = f"from_json(cast(value as string), {_literal(shape.schema)}) as {_FIELDS}"
    frame = records.selectExpr(*columns, parsed)
    fields = frame.select(f"{_FIELDS}.*").columns
    return frame.selectExpr(*RECORD_NAMES, *_renamed(fields, _FIELDS, RECORD_NAMES))


def read_topic(
    spark: "SparkSession",
    topic: str,
    *,
    start: str = "oldest",
    end: str = "latest",
    format: str = "auto",
    schema: str | None = None,
    bootstrap: str = DEFAULT_BOOTSTRAP,
    properties: Mapping[str, str] | None = None,
) -> "DataFrame":
    """What a topic holds from `start` to `end`, as a table; reading it again gives the same.

    `properties` are client properties, in the names of Java's clients or of librdkafka.
    """
    bus = _bus(bootstrap, properties)
    ranges = TopicSource(topics=(topic,), start=start, end=end).ranges(bus)
    return as_table(read_ranges(spark, bus, ranges), _shape_of_topic(bus, ranges, format, schema))


def stream_topic(
    spark: "SparkSession",
    topic: str,
    *,
    start: str = "latest",
    format: str = "auto",
    schema: str | None = None,
    bootstrap: str = DEFAULT_BOOTSTRAP,
    properties: Mapping[str, str] | None = None,
    max_rows_per_batch: int | None = None,
) -> "DataFrame":
    """A topic from `start` on, as a streaming table; its fields are those it has now."""
    bus = _bus(bootstrap, properties)
    source = TopicSource(topics=(topic,), start=start, max_rows_per_batch=max_rows_per_batch)
    source.check(bus)
    everything = TopicSource(topics=(topic,)).ranges(bus)
    shape = _shape_of_topic(bus, everything, format, schema)
    run = Run(spark=spark, bus=bus, name=f"stream_topic {topic}", app_id="")
    return as_table(source.stream(run), shape)


def _shape_of_topic(bus: Bus, ranges: OffsetRanges, format: str, schema: str | None) -> Shape:
    sample = take_sample(bus, ranges) if needs_sample(format, schema) else None
    return find_shape(format, schema, sample)


def _bus(bootstrap: str, properties: Mapping[str, str] | None) -> Bus:
    return Bus(bootstrap, properties or {})


def _by_decoder(records: "DataFrame", shape: Shape) -> "DataFrame":
    from headrace.pipelines.decoders.parse import parse_decoder

    decoder: Decoder = parse_decoder(shape.format, {"schema": shape.schema or ""})
    decoded = decoder.decode(records)
    names = [name for name in RECORD_NAMES if name != "value"]
    record = [_column(f"{RECORD_COLUMN}.{name}", name) for name in names]
    fields = [name for name in decoded.columns if not name.startswith("_")]
    return decoded.selectExpr(*record, *_renamed(fields, None, names))


def _renamed(
    fields: list[str], struct: str | None, taken: tuple[str, ...] | list[str]
) -> list[str]:
    """The fields as columns, those with a name that is taken under another."""
    used = set(taken)
    columns = list[str]()
    for field in fields:
        name = field
        while name.lower() in used:
            name = CLASH_PREFIX + name
        used.add(name.lower())
        path = f"{struct}.{quoted(field)}" if struct else quoted(field)
        columns.append(f"{path} as {quoted(name)}")
    return columns


def _column(path: str, name: str) -> str:
    if name == "key":
        return f"{_text(path)} as key"
    if name == "headers":
        value = _text("header.value")
        named = f"named_struct('key', header.key, 'value', {value})"
        return f"transform({path}, header -> {named}) as headers"
    return f"{path} as {name}"


def _text(path: str) -> str:
    return (
        f"case when is_valid_utf8(cast({path} as string)) then cast({path} as string) "
        f"else concat('0x', hex({path})) end"
    )


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
