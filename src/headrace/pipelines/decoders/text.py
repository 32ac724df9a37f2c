"""UTF-8 text: the whole value in the column `text`."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.pipelines.decoders.ddl import Atom, SchemaField
from headrace.pipelines.decoders.record_decoder import RecordDecoder, error_case

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

NOT_UTF8 = ("not is_valid_utf8(_headrace_text)", "not UTF-8")


@dataclass(frozen=True)
class Text(RecordDecoder):
    """An empty value is empty text; a null one is null."""

    @property
    def fields(self) -> tuple[SchemaField, ...]:
        """The one column."""
        return (SchemaField("text", Atom("string")),)

    def describe(self) -> str:
        """A few words for people."""
        return "UTF-8 text"

    def explain(self, value: bytes | None) -> str:
        """Say in one sentence why `value` could not be decoded."""
        return not_utf8(value or b"") or "it is UTF-8"

    def _decode(self, records: "DataFrame", also: list[str]) -> "DataFrame":
        text = records.selectExpr("cast(value as string) as _headrace_text", "_record", *also)
        return text.selectExpr("_headrace_text as text", "_record", error_case([NOT_UTF8]), *also)


def not_utf8(value: bytes) -> str | None:
    """Where `value` stops being UTF-8, as a sentence; None: it is all UTF-8."""
    try:
        value.decode()
    except UnicodeDecodeError as error:
        return f"not UTF-8: byte 0x{value[error.start]:02x} at position {error.start}"
    return None
