"""Rows as Avro, written by fastavro on Spark's workers, with a header before each if wanted.

Without a schema of the user's every field is a union of null and its type, in the order of the
columns, in a record called `row`: `schema_for` gives it to whoever has to register it.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from typing import TYPE_CHECKING, Any

from headrace.pipelines.decoders.avro_header import AvroHeader, header_for
from headrace.pipelines.decoders.avro_schema import avro_of, read_avro_schema
from headrace.pipelines.encoders.encoder import (
    VALUE_COLUMN,
    Encoder,
    fields_of_frame,
    name_as_column,
)
from headrace.pipelines.errors import PipelineDefinitionError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class AvroEncoder(Encoder):
    """Writes what `Avro` reads. `schema_id` is what a registry gave the schema."""

    header: AvroHeader = "none"
    schema: str | None = None
    schema_id: int = 0
    _given: Any = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Read the schema, which raises PipelineDefinitionError."""
        given = read_avro_schema(self.schema) if self.schema else None
        object.__setattr__(self, "_given", given)

    def describe(self) -> str:
        """A few words for people."""
        return "Avro" if self.header == "none" else f"Avro behind a {self.header} header"

    def schema_for(self, rows: "DataFrame", columns: Sequence[str]) -> str:
        """The schema, as JSON, that these columns are written with."""
        return json.dumps(self._given or avro_of(fields_of_frame(rows, columns)))

    def encode(
        self, rows: "DataFrame", columns: Sequence[str], null_where: str | None = None
    ) -> "DataFrame":
        """Replace `columns` by `value`, binary; the other columns stay."""
        from fastavro import parse_schema
        from pyspark.sql.types import BinaryType, StructField, StructType

        schema = json.loads(self.schema_for(rows, columns))
        if self._given:
            _check_names(schema, columns)
        others = [name for name in rows.columns if name not in columns]
        header = header_for(self.header, schema, self.schema_id)
        result = StructType(
            [rows.schema[name] for name in others] + [StructField(VALUE_COLUMN, BinaryType())]
        )
        ordered = rows.select(*map(name_as_column, [*others, *columns]))
        write = _writer_of(parse_schema(schema), header, list(columns), others, null_where)
        return ordered.mapInArrow(write, result)


def _check_names(schema: Any, columns: Sequence[str]) -> None:
    for each in schema["fields"]:
        if each["name"] not in columns and "default" not in each:
            raise PipelineDefinitionError(
                f"to-schema: no column is called {each['name']}; there are {', '.join(columns)}"
            )


def _writer_of(
    schema: Any, header: bytes, columns: list[str], others: list[str], null_where: str | None
) -> Callable[[Iterator["pa.RecordBatch"]], Iterator["pa.RecordBatch"]]:
    def write_batches(batches: Iterator["pa.RecordBatch"]) -> Iterator["pa.RecordBatch"]:
        import pyarrow as pa
        from fastavro import schemaless_writer

        def written(row: dict[str, Any]) -> bytes:
            target = BytesIO()
            target.write(header)
            schemaless_writer(target, schema, row)
            return target.getvalue()

        for batch in batches:
            rows = batch.select(columns).to_pylist(maps_as_pydicts="strict")
            kept = [batch.column(name) for name in others]
            skips = batch.column(null_where).to_pylist() if null_where else [False] * len(rows)
            pairs = zip(rows, skips, strict=True)
            values = pa.array([None if skip else written(row) for row, skip in pairs], pa.binary())
            yield pa.RecordBatch.from_arrays([*kept, values], names=[*others, VALUE_COLUMN])

    return write_batches
