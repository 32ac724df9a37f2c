r"""Rows as lines of cells: TSV with backslash escapes, or CSV with quotes.

Null is `\N` in TSV and an empty cell in CSV. What has parts is written as JSON into its cell,
which can be read back as text only.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.pipelines.decoders.ddl import Array, Map, SchemaField, Struct
from headrace.pipelines.decoders.tsv import TAB, check_separator
from headrace.pipelines.encoders.encoder import (
    TEXT_OPTIONS,
    TIMESTAMP_NTZ_PATTERN,
    TIMESTAMP_PATTERN,
    TextEncoder,
    name_as_column,
)

if TYPE_CHECKING:
    from pyspark.sql import Column


@dataclass(frozen=True)
class TsvEncoder(TextEncoder):
    """Writes what `Tsv` reads."""

    separator: str = TAB
    is_quoted: bool = False

    def __post_init__(self) -> None:
        """Refuse what cannot stand between cells."""
        check_separator(self.separator, is_quoted=self.is_quoted)

    def describe(self) -> str:
        """A few words for people."""
        return "CSV" if self.is_quoted else "TSV"

    def text(self, fields: Sequence[SchemaField]) -> "Column":
        """The text of a row with these columns."""
        from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

        cells = [_cell(each) for each in fields]
        if self.is_quoted:
            quoted = [_quoted(cell, self.separator) for cell in cells]
            return F.concat_ws(self.separator, *(F.coalesce(cell, F.lit("")) for cell in quoted))
        escaped = [self._escaped(cell) for cell in cells]
        return F.concat_ws(self.separator, *(F.coalesce(cell, F.lit("\\N")) for cell in escaped))

    def _escaped(self, cell: "Column") -> "Column":
        from pyspark.sql import functions as F  # noqa: N812

        for found, written in (("\\", "\\\\"), ("\t", "\\t"), ("\n", "\\n"), ("\r", "\\r")):
            cell = F.replace(cell, F.lit(found), F.lit(written))
        if self.separator != TAB:
            # There is no escape for it: the reader would count one cell more.
            error = F.lit(f"a cell holds the separator {self.separator!r}; choose another, or csv")
            holds = F.contains(cell, F.lit(self.separator))
            cell = F.when(holds, F.raise_error(error).cast("string")).otherwise(cell)
        return cell


def _cell(field: SchemaField) -> "Column":
    from pyspark.sql import functions as F  # noqa: N812

    column = name_as_column(field.name)
    if isinstance(field.type, Array | Map | Struct):
        return F.to_json(column, TEXT_OPTIONS)
    match field.type.ddl:
        case "timestamp":
            return F.date_format(
                F.to_utc_timestamp(column, F.current_timezone()), TIMESTAMP_PATTERN
            )
        case "timestamp_ntz":
            return F.date_format(column, TIMESTAMP_NTZ_PATTERN)
        case "binary":
            return F.base64(column)
    return column.cast("string")


def _quoted(cell: "Column", separator: str) -> "Column":
    from pyspark.sql import functions as F  # noqa: N812

    needs_quotes = F.rlike(cell, F.lit(f'["\\r\\n{_in_class(separator)}]')) | (cell == "")
    doubled = F.replace(cell, F.lit('"'), F.lit('""'))
    return F.when(needs_quotes, F.concat(F.lit('"'), doubled, F.lit('"'))).otherwise(cell)


def _in_class(separator: str) -> str:
    return f"\\{separator}" if separator in "[]^-&" else separator
