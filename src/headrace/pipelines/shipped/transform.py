"""Field mapping, filter and change of format, from topic to topic.

A tombstone stays one, under its own key: it has no fields to map, to filter by or to take a key
from. Headers and timestamps are kept; the partition follows from the key.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from headrace.pipelines.decoders.parse import FORMATS, parse_decoder
from headrace.pipelines.definition import RECORD_COLUMN, Option, Pipeline, Sink, Source, Transform
from headrace.pipelines.encoders.encoder import VALUE_COLUMN, Encoder
from headrace.pipelines.encoders.parse import parse_encoder
from headrace.pipelines.errors import PipelineDefinitionError
from headrace.pipelines.sinks.topic import TOPIC_OPTIONS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ALL = f"* except ({RECORD_COLUMN})"
_OWN_RECORD, _OWN_KEY, _OWN_TOMBSTONE = "_headrace_record", "_headrace_key", "_headrace_tombstone"
_OWN = (_OWN_RECORD, _OWN_KEY, _OWN_TOMBSTONE)
# What a record of the format `raw` has: the same struct as the other decoders give.
_RAW = (
    "named_struct('key', key, 'topic', topic, 'partition', partition, 'offset', offset, "
    "'timestamp', timestamp, 'headers', headers, 'is_tombstone', value is null) as _record"
)

OPTIONS = (
    Option("format", f"Format of the values read: {', '.join(FORMATS)}.", default="json"),
    Option(
        "schema",
        "Their fields: sensor string not null, celsius double; Avro: JSON or a file.",
        example="sensor string not null, celsius double",
    ),
    Option("separator", "What stands between the cells of TSV and CSV."),
    Option("avro-header", "Before each Avro value: none, confluent or single-object."),
    Option("avro-schema-id", "The schema's number in the registry; other values are bad records."),
    Option("row-tag", "The XML element that a value is.", default="row"),
    Option("select", "SQL for the fields written: sensor, celsius*1.8+32 as fahrenheit."),
    Option("where", "SQL condition: other records are left out."),
    Option("key", "SQL for the key written; without it the key is kept."),
    Option("to-format", "Format of the values written; without it the one read."),
    Option("to-separator", "What stands between the cells written."),
    Option("to-avro-header", "Before each Avro value written: none, confluent or single-object."),
    Option("to-schema", "Avro schema to write with, as JSON or a file; without it from select."),
    Option("to-schema-id", "The number a registry gave the schema, for the confluent header."),
    Option("to-row-tag", "The XML element to write.", default="row"),
    *TOPIC_OPTIONS,
)


def pipeline(options: Mapping[str, str], source: Source, sinks: tuple[Sink, ...]) -> Pipeline:
    """The pipeline with these options; PipelineDefinitionError when they make no sense."""
    format_name = options.get("format", "json")
    encoder = parse_encoder(options.get("to-format", format_name), options)
    return Pipeline(
        name="transform",
        summary="Field mapping, filter and change of format, from topic to topic.",
        source=source,
        decoder=parse_decoder(format_name, options),
        sinks=sinks,
        transform=transform_with(
            encoder, options.get("select"), options.get("where"), options.get("key")
        ),
        options=dict(options),
    )


def transform_with(
    encoder: Encoder, select: str | None = None, where: str | None = None, key: str | None = None
) -> Transform:
    """The pure function: decoded rows to key, value, headers, partition, timestamp, _record."""

    def transform(rows: "DataFrame") -> "DataFrame":
        from pyspark.errors import AnalysisException, ParseException

        if RECORD_COLUMN not in rows.columns:
            rows = rows.selectExpr("value", _RAW)
        try:
            chosen = _choose(rows, select, where, key)
        except (AnalysisException, ParseException) as error:
            raise PipelineDefinitionError(_sentence(error, select, where, key)) from error
        fields = [name for name in chosen.columns if name not in _OWN]
        encoded = encoder.encode(chosen, fields, null_where=_OWN_TOMBSTONE)
        return encoded.selectExpr(
            f"if({_OWN_TOMBSTONE}, {_OWN_RECORD}.key, {_OWN_KEY}) as key",
            VALUE_COLUMN,
            f"{_OWN_RECORD}.headers as headers",
            "cast(null as int) as partition",
            f"{_OWN_RECORD}.timestamp as timestamp",
            # By it the sink knows a row that an earlier attempt has written.
            f"{_OWN_RECORD} as {RECORD_COLUMN}",
        )

    return transform


def _choose(
    rows: "DataFrame", select: str | None, where: str | None, key: str | None
) -> "DataFrame":
    record = f"{RECORD_COLUMN} as {_OWN_RECORD}, {RECORD_COLUMN}.is_tombstone as {_OWN_TOMBSTONE}"
    # Through text, so that a number becomes its digits; bytes are the only type that stays.
    own_key = f"({key}) as {_OWN_KEY}" if key else f"{RECORD_COLUMN}.key as {_OWN_KEY}"
    query = f"select {select or _ALL}\n, {record}, {own_key} from __rows__"
    if where:
        query += f" where {RECORD_COLUMN}.is_tombstone or (\n{where}\n)"
    # Braces of the user's are none of the template's.
    query = query.replace("{", "{{").replace("}", "}}").replace("__rows__", "{rows}")
    chosen = rows.sparkSession.sql(query, rows=rows)
    if RECORD_COLUMN in chosen.columns:  # from `select *`
        chosen = chosen.drop(RECORD_COLUMN)
    if chosen.schema[_OWN_KEY].dataType.simpleString() != "binary":
        chosen = chosen.withColumn(_OWN_KEY, chosen[_OWN_KEY].cast("string").cast("binary"))
    return chosen


def _sentence(error: Exception, select: str | None, where: str | None, key: str | None) -> str:
    given = {"select": select, "where": where, "key": key}
    options = ", ".join(f"{name}={value!r}" for name, value in given.items() if value)
    first_line = str(error).strip().partition("\n")[0]
    return f"{options or 'transform'}: {first_line}"
