"""A topic of JSON, TSV or other records to an SQL table by key: insert, update, delete.

A value sets the row of its key, a null value deletes it. The key is one or more fields, or the
message's key as text. A record without a usable key is a dead letter: it would stop the table.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.pipelines.decoders.ddl import SchemaField
from headrace.pipelines.decoders.parse import parse_decoder
from headrace.pipelines.decoders.record_decoder import RecordDecoder
from headrace.pipelines.definition import (
    ERROR_COLUMN,
    RECORD_COLUMN,
    Option,
    Pipeline,
    Sink,
    unchanged,
)
from headrace.pipelines.errors import PipelineDefinitionError
from headrace.pipelines.sinks.sql.table import SqlTable, parse_key
from headrace.pipelines.source import TopicSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

OPTIONS = (
    Option("format", "json, tsv, csv, avro, xml or text", default="json"),
    Option(
        "schema",
        "the fields: `sensor string not null, celsius double`",
        example="sensor string not null, celsius double",
    ),
    Option("separator", "between the fields of tsv and csv"),
    Option("avro-header", "what stands before an Avro value: none, confluent or single-object"),
    Option("avro-schema-id", "the schema's number in the registry; other values are bad records"),
    Option("row-tag", "the element that is a row of xml"),
    Option(
        "key",
        "the fields that say which row is meant, as a,b; "
        "`message`: the message's key, in a column `key` (the default)",
    ),
    Option("table", "the table's name; default: the topic's, with _ for what is no letter"),
    Option("provenance", "no leaves out _topic, _partition, _offset and _timestamp"),
)
MESSAGE_KEY = "message"
KEY_COLUMN = "key"

_MISSING, _TOO_LONG, _NOT_UTF8 = "no key", "key too long", "key not UTF-8"


@dataclass(frozen=True)
class KeyedDecoder(RecordDecoder):
    """Decodes as `inner` does, and refuses what no row of the table could be found by."""

    inner: RecordDecoder
    key: tuple[str, ...]
    is_message_key: bool
    # The greatest length of each key field, where the database has one.
    limit: int | None = None

    @property
    def fields(self) -> tuple[SchemaField, ...]:
        """What a value has in it."""
        return self.inner.fields

    def describe(self) -> str:
        """A few words for people."""
        key = "the message's key" if self.is_message_key else ", ".join(self.key)
        return f"{self.inner.describe()}, by {key}"

    def drift(self, sample: list[bytes | None]) -> list[str]:
        """What the decoder within says."""
        drift = getattr(self.inner, "drift", None)
        return [] if drift is None else list(drift(sample))

    def explain(self, value: bytes | None) -> str:
        """Say in one sentence why `value` could not be decoded, or its row not be found."""
        return self._explain_missing(None) if value is None else self.inner.explain(value)

    def explain_error(self, error: str, value: bytes | None) -> str | None:
        """The sentence for an `_error` of ours; None for one of the decoder within."""
        if error == _MISSING:
            return self._explain_missing(value)
        if error == _TOO_LONG:
            return f"the key is longer than the {self.limit} characters the table's index takes"
        return "the message's key is not UTF-8 text" if error == _NOT_UTF8 else None

    def _explain_missing(self, value: bytes | None) -> str:
        if self.is_message_key:
            return "the message has no key, by which the table finds its row"
        names = ", ".join(self.key)
        if value is not None:
            return f"a key field is null: {names}"
        if len(self.key) > 1:
            return f"a null value deletes by the message's key: a JSON object with {names}"
        return f"a null value deletes by the message's key, which is no value of {names}"

    def _decode(self, records: "DataFrame", also: list[str]) -> "DataFrame":
        from pyspark.sql import functions as f

        from headrace.pipelines.sinks.sql.columns import columns_of
        from headrace.pipelines.sinks.sql.rows import key_value

        decoded = self.inner._decode(records, also)
        if self.is_message_key:
            message_key = f.col(f"{RECORD_COLUMN}.key").cast("string")
            key = [("string", message_key)]
            is_text = f.is_valid_utf8(message_key)
        else:
            schema = decoded.select(*(each.quoted for each in self.fields)).schema
            columns = columns_of(schema, self.key, has_provenance=False)
            key = [(each.kind, key_value(each, columns)) for each in columns if each.is_key]
            is_text = f.lit(True)
        is_missing = is_too_long = f.lit(False)
        for kind, value in key:
            is_missing = is_missing | value.isNull()
            if self.limit is not None and kind in ("string", "binary"):
                is_too_long = is_too_long | (f.length(value) > self.limit)
        ours = f.when(is_missing, _MISSING).when(~is_text, _NOT_UTF8).when(is_too_long, _TOO_LONG)
        return decoded.withColumn(ERROR_COLUMN, f.coalesce(f.col(ERROR_COLUMN), ours))


def with_message_key(rows: "DataFrame") -> "DataFrame":
    """The message's key as text, in front of the fields."""
    from pyspark.sql import functions as f

    return rows.select(f.col(f"{RECORD_COLUMN}.key").cast("string").alias(KEY_COLUMN), "*")


def pipeline(options: Mapping[str, str], source: TopicSource, sinks: tuple[Sink, ...]) -> Pipeline:
    """Keep a table of what `source` names."""
    decoder = parse_decoder(options.get("format", "json"), options)
    if not isinstance(decoder, RecordDecoder):
        raise PipelineDefinitionError(
            f"format {options['format']} has no fields for a table; write text, json, tsv or avro"
        )
    key = _key(options, sinks)
    is_message_key = key == (MESSAGE_KEY,)
    names = [field.name for field in decoder.fields]
    if is_message_key:
        if KEY_COLUMN in (name.lower() for name in names):
            raise PipelineDefinitionError(
                "the schema has a field key, the name of the column for the message's key; "
                "write --option key=FIELD, or rename the field"
            )
        key = (KEY_COLUMN,)
    for name in () if is_message_key else key:
        if name not in names:
            raise PipelineDefinitionError(
                f"key={name}: the schema has no such field; it has {', '.join(names)}"
            )
    sinks = tuple(_filled_in(sink, options, source, key) for sink in sinks)
    limits = [sink.key_limit() for sink in sinks if isinstance(sink, SqlTable)]
    return Pipeline(
        name="table",
        summary=(__doc__ or "").partition("\n")[0],
        source=source,
        decoder=KeyedDecoder(
            decoder, key, is_message_key, min((each for each in limits if each), default=None)
        ),
        sinks=sinks,
        transform=with_message_key if is_message_key else unchanged,
        options=dict(options),
    )


def _key(options: Mapping[str, str], sinks: tuple[Sink, ...]) -> tuple[str, ...]:
    """From the sinks' URIs, from the options, or the message's."""
    own = {sink.key for sink in sinks if isinstance(sink, SqlTable) and sink.key}
    if len(own) > 1:
        raise PipelineDefinitionError(
            "the sinks have different keys; run the pipeline once for each"
        )
    return own.pop() if own else parse_key(options.get("key", "")) or (MESSAGE_KEY,)


def _filled_in(
    sink: Sink, options: Mapping[str, str], source: TopicSource, key: tuple[str, ...]
) -> Sink:
    if not isinstance(sink, SqlTable):
        return sink
    table = sink.table or options.get("table") or _table_name(source)
    return SqlTable(sink.address, table, key, has_provenance=sink.has_provenance)


def _table_name(source: TopicSource) -> str:
    if len(source.topics) != 1:
        raise PipelineDefinitionError(
            "the table has no name, as there is not just one topic; give --option table=NAME"
        )
    name = re.sub(r"\W", "_", source.topics[0])
    return f"_{name}" if name[0].isdigit() else name
