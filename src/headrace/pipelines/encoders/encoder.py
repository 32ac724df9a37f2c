"""What an encoder is, and the texts that timestamps and bytes become in every format."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

from headrace.pipelines.decoders.ddl import Array, Atom, Decimal, Map, SchemaField, Struct, Type

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

VALUE_COLUMN = "value"
# Spark's own pattern stops at milliseconds; every decoder here reads this one.
TIMESTAMP_PATTERN = "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"
TIMESTAMP_NTZ_PATTERN = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"
TEXT_OPTIONS = {
    "timestampFormat": TIMESTAMP_PATTERN,
    "timestampNTZFormat": TIMESTAMP_NTZ_PATTERN,
    "timeZone": "UTC",
}


class Encoder(ABC):
    """Turns columns of a frame into one, `value`."""

    @abstractmethod
    def describe(self) -> str:
        """A few words for people: `JSON`."""

    @abstractmethod
    def encode(
        self, rows: "DataFrame", columns: Sequence[str], null_where: str | None = None
    ) -> "DataFrame":
        """Replace `columns` by `value`, binary; the other columns stay.

        Where the boolean column `null_where` holds, `value` is null and nothing is encoded.
        """


class TextEncoder(Encoder):
    """An encoder that is one SQL expression giving text."""

    @abstractmethod
    def text(self, fields: Sequence[SchemaField]) -> "Column":
        """The text of a row with these columns."""

    def encode(
        self, rows: "DataFrame", columns: Sequence[str], null_where: str | None = None
    ) -> "DataFrame":
        """Replace `columns` by `value`, binary; the other columns stay."""
        from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

        text = self.text(fields_of_frame(rows, columns))
        if null_where:
            text = F.when(~name_as_column(null_where), text)
        others = [name_as_column(name) for name in rows.columns if name not in columns]
        return rows.select(*others, text.cast("binary").alias(VALUE_COLUMN))


def name_as_column(name: str) -> "Column":
    """The column of this name, whatever is in the name."""
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

    return F.col(SchemaField(name, Atom("string")).quoted)


def fields_of_frame(rows: "DataFrame", columns: Sequence[str]) -> list[SchemaField]:
    """The types of these columns."""
    return [SchemaField(name, _type_of(rows.schema[name].dataType)) for name in columns]


def _type_of(kind: "DataType") -> Type:
    from pyspark.sql import types as T  # noqa: N812

    if isinstance(kind, T.ArrayType):
        return Array(_type_of(kind.elementType))
    if isinstance(kind, T.MapType):
        return Map(_type_of(kind.keyType), _type_of(kind.valueType))
    if isinstance(kind, T.StructType):
        return Struct(
            tuple(SchemaField(each.name, _type_of(each.dataType)) for each in kind.fields)
        )
    if isinstance(kind, T.DecimalType):
        return Decimal(kind.precision, kind.scale)
    return Atom(kind.simpleString())
