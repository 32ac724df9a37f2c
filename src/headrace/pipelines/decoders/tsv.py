r"""Lines of cells: TSV with backslash escapes, or CSV with quotes.

TSV: `\t`, `\n`, `\r` and `\\` stand for what a cell cannot hold, `\N` for null; an empty cell is
empty text or no bytes, and null for every other type. Splitting is cheaper than Spark's CSV reader
(docs/pipelines/formats.md), so only quoted cells go through that: an empty one is null, `""` text.
"""

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headrace.pipelines.decoders.cells import find_cell_mismatch, unescape_cell
from headrace.pipelines.decoders.conversions import from_text, no_numbers
from headrace.pipelines.decoders.ddl import Array, Map, SchemaField, Struct, parse_ddl
from headrace.pipelines.decoders.record_decoder import (
    RecordDecoder,
    check_names,
    describe_fields,
    error_case,
    missing,
)
from headrace.pipelines.decoders.text import NOT_UTF8, not_utf8
from headrace.pipelines.errors import PipelineDefinitionError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

TAB = "\t"
_NULL = "concat(chr(92), 'N')"  # chr(92) is the backslash, which SQL would want doubled
_BAD = "_headrace_bad"
_MARK = "\ufeff"
# Spark makes null of a cell that is this: nobody writes it.
_NOTHING = "\0headrace: no such cell\0"
# In Java: possessive, since else each cell takes a frame of its stack.
_QUOTED = '"[^"]*+(?:""[^"]*+)*+"'
_LINE_END = re.compile(r"\r?\n\Z")
_QUOTED_CELL = re.compile(r'"((?:[^"]|"")*+)"')


@dataclass(frozen=True)
class Tsv(RecordDecoder):
    """`Tsv("sensor string, celsius double")`; with `is_quoted` and a comma it is CSV."""

    schema: str
    separator: str = TAB
    is_quoted: bool = False
    _fields: tuple[SchemaField, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Read the schema, which raises PipelineDefinitionError."""
        fields = check_names(parse_ddl(self.schema))
        for each in fields:
            if isinstance(each.type, Array | Map | Struct):
                raise PipelineDefinitionError(
                    f"field {each.name}: a cell holds no {each.type.ddl}; use JSON for that"
                )
        check_separator(self.separator, is_quoted=self.is_quoted)
        object.__setattr__(self, "_fields", fields)

    @property
    def fields(self) -> tuple[SchemaField, ...]:
        """What a value has in it."""
        return self._fields

    def describe(self) -> str:
        """A few words for people."""
        name = "CSV" if self.is_quoted else "TSV"
        return f"{name} with {describe_fields(self._fields)}"

    def _decode(self, records: "DataFrame", also: list[str]) -> "DataFrame":
        from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

        text = F.col("value").cast("string")
        if self.is_quoted:
            # A line may come with its end.
            text = F.when(F.endswith(text, F.lit("\n")), F.regexp_replace(text, "\r?\n\\z", "")
                          ).otherwise(text)  # fmt: skip
        cells = records.select(
            text.alias("_headrace_text"),
            self._cells(text).alias("_headrace_cells"),
            "_record",
            *also,
        )
        fields = cells.selectExpr(
            *(f"{self._value(index)} as {each.quoted}" for index, each in enumerate(self._fields)),
            "_headrace_text",
            "_headrace_cells",
            "_record",
            *also,
        )
        names = [each.quoted for each in self._fields]
        return fields.selectExpr(*names, "_record", error_case(self._error_reasons()), *also)

    def _cells(self, text: "Column") -> "Column":
        from pyspark.sql import functions as F  # noqa: N812

        if not self.is_quoted:
            return F.split(text, re.escape(self.separator), -1)
        schema = ", ".join(f"_{index} string" for index in range(len(self._fields)))
        options = {
            "mode": "PERMISSIVE",
            "columnNameOfCorruptRecord": _BAD,
            "sep": self.separator,
            "quote": '"',
            "escape": '"',
            # Else Spark has no way to tell an empty cell from one with empty text in it.
            "nullValue": _NOTHING,
            "multiLine": "true",
        }
        return F.from_csv(text, f"{schema}, {_BAD} string", options)

    def _cell(self, index: int) -> str:
        if self.is_quoted:
            return f"_headrace_cells._{index}"
        return f"get(_headrace_cells, {index})"

    def _value(self, index: int) -> str:
        cell, kind = self._cell(index), self._fields[index].type
        if self.is_quoted:
            return from_text(cell, kind)
        if kind.ddl == "string":
            return _unescaped(cell)
        return from_text(cell, kind)

    def _error_reasons(self) -> list[tuple[str, str]]:
        if self.is_quoted:
            count = f"_headrace_cells is null or _headrace_cells.{_BAD} is not null"
            if len(self._fields) > 1:
                count += " or _headrace_text = ''"
            # The grammar costs as much as half a parse: only where there is something to see.
            pattern = _grammar(self.separator, len(self._fields)).replace("\\", "\\\\")
            odd = " or ".join(f"instr(_headrace_text, chr({code})) > 0" for code in (34, 10, 13))
            count += f" or (({odd}) and not _headrace_text rlike '{pattern}')"
            empty = "('')"
        else:
            count = f"size(_headrace_cells) != {len(self._fields)}"
            empty = f"('', {_NULL})"
        broken = [
            (f"{self._cell(index)} not in {empty} and {each.quoted} is null", "malformed")
            for index, each in enumerate(self._fields)
            if each.type.ddl != "string"
        ]
        return [
            NOT_UTF8,
            (f"startswith(_headrace_text, '{_MARK}')", "a byte order mark"),
            (count, "wrong number of columns"),
            *broken,
            *((condition, "no number") for condition in self._no_numbers()),
            *missing(self._fields),
        ]

    def _no_numbers(self) -> list[str]:
        cells = {self._cell(index): each for index, each in enumerate(self._fields)}
        return no_numbers(cells, "_headrace_text")

    def explain(self, value: bytes | None) -> str:
        """Say in one sentence why `value` could not be decoded."""
        value = value or b""
        if complaint := not_utf8(value):
            return complaint
        if value.decode().startswith(_MARK):
            return "it begins with a byte order mark"
        cells = self._split(value.decode())
        if isinstance(cells, str):
            return cells
        if len(cells) != len(self._fields):
            return f"{_columns(len(cells))}, wanted {len(self._fields)}"
        for cell, each in zip(cells, self._fields, strict=True):
            if complaint := find_cell_mismatch(cell, each):
                return complaint
        return f"Spark cannot read it as {describe_fields(self._fields)}"

    def _split(self, text: str) -> list[str | None] | str:
        if not self.is_quoted:
            return [unescape_cell(cell) for cell in text.split(self.separator)]
        return _split_quoted(text, self.separator)


def check_separator(separator: str, *, is_quoted: bool) -> None:
    """Raise PipelineDefinitionError for what cannot stand between cells."""
    if not separator or "\\" in separator or "\n" in separator or "\r" in separator:
        raise PipelineDefinitionError(
            f"separator {separator!r}: wanted a character that is no backslash or line end"
        )
    if is_quoted and (len(separator) > 1 or separator == '"'):
        raise PipelineDefinitionError(f"separator {separator!r}: CSV wants one that is no quote")


def _columns(count: int) -> str:
    return "1 column" if count == 1 else f"{count} columns"


def _unescaped(cell: str) -> str:
    # Between doubled backslashes a single one always starts an escape.
    part = "part"
    for letter, code in (("t", 9), ("n", 10), ("r", 13)):
        part = f"replace({part}, concat(chr(92), '{letter}'), chr({code}))"
    parts = f"transform(split({cell}, repeat(chr(92), 4), -1), part -> {part})"
    return (
        f"case when instr({cell}, chr(92)) = 0 then {cell} when {cell} = {_NULL} then null "
        f"else array_join({parts}, chr(92)) end"
    )


# Quoted cells as RFC 4180 has them. Spark's reader takes a quote that is never closed for closed at
# the end, and text behind a closing quote, or a line end outside of quotes, for text. A quote in a
# cell that began without one stands for itself, as everywhere.


def _grammar(separator: str, count: int) -> str:
    """A regular expression of Java's for a line of so many cells."""
    other = f"[^\\x{{{ord(separator):x}}}\\r\\n"
    cell = f'(?:{_QUOTED}|(?:{other}"]{other}]*+)?+)'
    return f"\\A{cell}(?:\\x{{{ord(separator):x}}}{cell}){{{count - 1}}}+\\z"


def _split_quoted(text: str, separator: str) -> list[str | None] | str:
    """The cells, an empty one None; or a sentence on where the quotes go wrong."""
    text = _LINE_END.sub("", text)
    cells, at = list[str | None](), 0
    while text:
        where = f"column {len(cells) + 1}"
        if text.startswith('"', at):
            match = _QUOTED_CELL.match(text, at)
            if match is None:
                return f"{where}: its quote is never closed"
            cells.append(match[1].replace('""', '"'))
            at = match.end()
            if at < len(text) and text[at] != separator:
                return f"{where}: there is text behind its closing quote"
        else:
            end = text.find(separator, at)
            cell = text[at:] if end < 0 else text[at:end]
            if "\n" in cell or "\r" in cell:
                return f"{where}: a line end outside of quotes"
            cells.append(cell or None)
            at += len(cell)
        if at >= len(text):
            break
        at += 1
    return cells
