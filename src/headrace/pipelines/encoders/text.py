"""One column as the value: text, or bytes as they are."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.pipelines.encoders.encoder import VALUE_COLUMN, Encoder, name_as_column
from headrace.pipelines.errors import PipelineDefinitionError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class ColumnEncoder(Encoder):
    """Writes what `Text` and `Raw` read."""

    name: str = "text"

    def describe(self) -> str:
        """A few words for people."""
        return "raw bytes" if self.name == "raw" else "UTF-8 text"

    def encode(
        self, rows: "DataFrame", columns: Sequence[str], null_where: str | None = None
    ) -> "DataFrame":
        """Replace the one column by `value`, binary; the other columns stay."""
        from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

        if len(columns) != 1:
            raise PipelineDefinitionError(
                f"to-format {self.name}: wanted one column, got {', '.join(columns)}; "
                "choose or make one with select"
            )
        value = name_as_column(columns[0])
        if rows.schema[columns[0]].dataType.simpleString() != "binary":
            value = value.cast("string").cast("binary")
        if null_where:
            value = F.when(~name_as_column(null_where), value)
        others = [name_as_column(name) for name in rows.columns if name not in columns]
        return rows.select(*others, value.alias(VALUE_COLUMN))
