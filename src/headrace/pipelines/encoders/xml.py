"""Rows as XML elements: a child element a field, nothing for a null."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.pipelines.decoders.ddl import SchemaField
from headrace.pipelines.decoders.xml import ROW_TAG, check_row_tag
from headrace.pipelines.encoders.encoder import TEXT_OPTIONS, TextEncoder, name_as_column

if TYPE_CHECKING:
    from pyspark.sql import Column


@dataclass(frozen=True)
class XmlEncoder(TextEncoder):
    """Writes what `Xml` reads."""

    row_tag: str = ROW_TAG

    def __post_init__(self) -> None:
        """Refuse what is no name of an element."""
        check_row_tag(self.row_tag)

    def describe(self) -> str:
        """A few words for people."""
        return f"XML <{self.row_tag}>"

    def text(self, fields: Sequence[SchemaField]) -> "Column":
        """The text of a row with these columns."""
        from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

        columns = [_as_text(each).alias(each.name) for each in fields]
        options = {**TEXT_OPTIONS, "rowTag": self.row_tag, "indent": ""}
        # The line end is the writer's, between rows of a file.
        return F.rtrim(F.to_xml(F.struct(*columns), options), F.lit("\n"))


def _as_text(field: SchemaField) -> "Column":
    from pyspark.sql import functions as F  # noqa: N812

    column = name_as_column(field.name)
    # Spark writes bytes as a list of hex numbers, which it cannot read.
    return F.base64(column) if field.type.ddl == "binary" else column
