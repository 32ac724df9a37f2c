"""Avro values, read by fastavro on Spark's workers: Spark's own module is not in its wheel.

A value that cannot be read becomes an error, never a failed task.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from io import BytesIO
from typing import TYPE_CHECKING, Any, cast

from headrace.installing import how_to_install
from headrace.pipelines.decoders.avro_header import (
    CONFLUENT_SIZE,
    AvroHeader,
    header_for,
    header_size,
    schema_id_of,
)
from headrace.pipelines.decoders.avro_schema import fields_of, read_avro_schema, readable
from headrace.pipelines.decoders.ddl import SchemaField
from headrace.pipelines.decoders.record_decoder import (
    CARRIED_COLUMN,
    CARRIED_FIELDS,
    RecordDecoder,
    check_names,
    describe_fields,
)
from headrace.pipelines.definition import ERROR_COLUMN, RECORD_COLUMN, RECORD_FIELDS
from headrace.pipelines.errors import PipelineDefinitionError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Avro(RecordDecoder):
    """`Avro(schema)`, where the schema is JSON text or the name of a file."""

    schema: str
    header: AvroHeader = "none"
    # What a registry gave the schema; None: values may have any number, and drift tells of several.
    schema_id: int | None = None
    _parsed: Any = field(init=False, repr=False, compare=False)
    _header: bytes = field(init=False, repr=False, compare=False)
    _fields: tuple[SchemaField, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Read the schema, which raises PipelineDefinitionError."""
        if self.schema_id is not None and self.header != "confluent":
            raise PipelineDefinitionError(
                "a schema id stands in a registry's header alone; write avro-header=confluent, "
                "or leave avro-schema-id out"
            )
        schema = read_avro_schema(self.schema)
        object.__setattr__(self, "_fields", check_names(fields_of(schema)))
        try:
            from fastavro import parse_schema
            from fastavro.schema import SchemaParseException, UnknownType
        except ImportError as error:
            raise PipelineDefinitionError(
                f"Avro needs the package fastavro: {how_to_install('spark', 'fastavro')}"
            ) from error
        try:
            is_known = self.header != "confluent" or self.schema_id is not None
            wanted = header_for(self.header, schema, self.schema_id or 0) if is_known else b""
            object.__setattr__(self, "_header", wanted)
            object.__setattr__(self, "_parsed", parse_schema(readable(schema)))
        except (SchemaParseException, UnknownType, KeyError, ValueError) as error:
            raise PipelineDefinitionError(f"Avro schema: {error}") from error

    @property
    def fields(self) -> tuple[SchemaField, ...]:
        """What a value has in it."""
        return self._fields

    def describe(self) -> str:
        """A few words for people."""
        behind = "" if self.header == "none" else f" behind a {self.header} header"
        return f"Avro{behind} with {describe_fields(self._fields)}"

    def explain(self, value: bytes | None) -> str:
        """Say in one sentence why `value` could not be decoded."""
        found = self.read(value or b"")
        return found if isinstance(found, str) else "it can be read"

    def read(self, value: bytes) -> dict[str, Any] | str:
        """The fields of a value, or why it has none."""
        from fastavro import schemaless_reader

        if not value:
            return "the value is empty"
        try:
            skipped = header_size(value, self.header, self._header)
            rest = BytesIO(value[skipped:])
            found: Any = schemaless_reader(rest, self._parsed, None)
        except ValueError as error:
            return str(error)
        except (EOFError, IndexError):
            return f"not Avro of this schema: its {len(value)} bytes end too early"
        except Exception as error:
            # Any bytes at all may stand here, and fastavro's Cython raises what it meets first.
            return f"not Avro of this schema: {type(error).__name__}: {error}"
        if left := len(value) - skipped - rest.tell():
            return f"not Avro of this schema: {left} of its {len(value)} bytes are left over"
        return dict(found)

    def drift(self, sample: list[bytes | None]) -> list[str]:
        """Whether values of late were written with several schemas, which nobody compares."""
        if self.header != "confluent" or self.schema_id is not None:
            return []
        long_enough = [each for each in sample if each and len(each) > CONFLUENT_SIZE]
        numbers = sorted({schema_id_of(each) for each in long_enough if each[0] == 0})
        if len(numbers) < 2:
            return []
        return [
            f"values have the schema ids {', '.join(map(str, numbers))} and all are read with one "
            "schema; name its id with avro-schema-id, and others are bad records"
        ]

    def _decode(self, records: "DataFrame", also: list[str]) -> "DataFrame":
        from pyspark.sql.pandas.types import to_arrow_schema
        from pyspark.sql.types import StructType

        columns = [f"{each.quoted} {each.type.ddl}" for each in self._fields]
        columns += [f"{RECORD_COLUMN} struct<{RECORD_FIELDS}>", f"{ERROR_COLUMN} string"]
        columns += [f"{CARRIED_COLUMN} struct<{CARRIED_FIELDS}>" for _ in also]
        schema = cast("StructType", StructType.fromDDL(", ".join(columns)))
        # The zone only names how workers exchange timestamps: they are counts since 1970, UTC.
        arrow = to_arrow_schema(schema, timezone="UTC")
        kept = records.select("value", RECORD_COLUMN, *also)
        return kept.mapInArrow(_reader_of(self, arrow), schema)


def _reader_of(
    decoder: Avro, schema: "pa.Schema"
) -> Callable[[Iterator["pa.RecordBatch"]], Iterator["pa.RecordBatch"]]:
    names = [each.name for each in decoder.fields]

    def read_batches(batches: Iterator["pa.RecordBatch"]) -> Iterator["pa.RecordBatch"]:
        import pyarrow as pa

        for batch in batches:
            values = batch.column("value").to_pylist()
            found = [None if value is None else decoder.read(value) for value in values]
            rows = [each if isinstance(each, dict) else {} for each in found]
            errors = [each if isinstance(each, str) else None for each in found]
            columns = [_column([row.get(name) for row in rows], schema.field(name).type, errors)
                       for name in names]  # fmt: skip
            columns.append(batch.column(RECORD_COLUMN).cast(schema.field(RECORD_COLUMN).type))
            columns.append(pa.array(errors, pa.string()))
            columns += [batch.column(name) for name in schema.names[len(columns) :]]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    return read_batches


def _column(values: list[Any], kind: "pa.DataType", errors: list[str | None]) -> "pa.Array":
    import pyarrow as pa

    try:
        return pa.array(values, kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, ValueError):
        # One value that the type cannot hold, such as a decimal with too many digits.
        good = list[Any]()
        for index, value in enumerate(values):
            try:
                pa.array([value], kind)
                good.append(value)
            except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, ValueError) as error:
                good.append(None)
                errors[index] = f"a value does not fit its type: {error}"
        return pa.array(good, kind)
