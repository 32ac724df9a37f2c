"""Rows as JSON objects: every field, null or not; timestamps ISO 8601 in UTC, bytes base64."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.pipelines.decoders.ddl import SchemaField
from headrace.pipelines.encoders.encoder import TEXT_OPTIONS, TextEncoder, name_as_column

if TYPE_CHECKING:
    from pyspark.sql import Column


@dataclass(frozen=True)
class JsonEncoder(TextEncoder):
    """Writes what `Json` reads."""

    def describe(self) -> str:
        """A few words for people."""
        return "JSON"

    def text(self, fields: Sequence[SchemaField]) -> "Column":
        """The text of a row with these columns."""
        from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

        columns = [name_as_column(each.name) for each in fields]
        return F.to_json(F.struct(*columns), {**TEXT_OPTIONS, "ignoreNullFields": "false"})
