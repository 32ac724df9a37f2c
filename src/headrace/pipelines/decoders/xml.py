"""XML elements, one a value: a child element a field, an attribute `a` the field `_a`.

Spark's reader looks for no root of a certain name and stops behind the first; both are looked at
here. Fields without parts are read as text and converted as cells are, since Spark's reader takes
`1,5` for fifteen; all elements are read as many, since it takes the last of two for the one.
"""

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from headrace.pipelines.decoders.cells import find_cell_mismatch
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
    from pyspark.sql import DataFrame

ROW_TAG = "row"
_NAME = re.compile(r"[A-Za-z_][\w.-]*")
_BAD = "_headrace_bad"
# Values are read as UTF-8, whatever a declaration says.
_OTHER_ENCODING = re.compile(
    r"""(?i)^\s*<\?xml[^>]*\sencoding\s*=\s*["'](?!utf-?8["']|us-ascii["'])([^"']*)"""
)


@dataclass(frozen=True)
class Xml(RecordDecoder):
    """`Xml("sensor string, celsius double", row_tag="reading")`."""

    schema: str
    row_tag: str = ROW_TAG
    _fields: tuple[SchemaField, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Read the schema, which raises PipelineDefinitionError."""
        check_row_tag(self.row_tag)
        object.__setattr__(self, "_fields", check_names(parse_ddl(self.schema)))

    @property
    def fields(self) -> tuple[SchemaField, ...]:
        """What a value has in it."""
        return self._fields

    def describe(self) -> str:
        """A few words for people."""
        return f"XML <{self.row_tag}> with {describe_fields(self._fields)}"

    def _decode(self, records: "DataFrame", also: list[str]) -> "DataFrame":
        from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

        schema = ", ".join(f"{each.quoted} {_as_read(each)}" for each in self._fields)
        options = {
            "mode": "PERMISSIVE",
            "columnNameOfCorruptRecord": _BAD,
            "rowTag": self.row_tag,
            "ignoreSurroundingSpaces": "false",
        }
        text = F.col("value").cast("string")
        parsed = records.select(
            text.alias("_headrace_text"),
            F.regexp_count(text, F.lit(f"<{re.escape(self.row_tag)}[\\s/>]")).alias(
                "_headrace_roots"
            ),
            F.rlike(text, F.lit(self._whole())).alias("_headrace_is_whole"),
            F.rlike(text, F.lit(_OTHER_ENCODING.pattern)).alias("_headrace_is_other"),
            F.from_xml(text, f"{schema}, {_BAD} string", options).alias("_headrace_xml"),
            "_record",
            *also,
        )
        fields = parsed.selectExpr(
            *(f"{self._value(each)} as {each.quoted}" for each in self._fields),
            "_headrace_text",
            "_headrace_roots",
            "_headrace_is_whole",
            "_headrace_is_other",
            "_headrace_xml",
            "_record",
            *also,
        )
        names = [each.quoted for each in self._fields]
        return fields.selectExpr(*names, "_record", error_case(self._error_reasons()), *also)

    def _whole(self) -> str:
        tag = re.escape(self.row_tag)
        return rf"(?s)^\s*(<\?xml.*?\?>)?\s*<{tag}(?=[\s/>]).*(</{tag}\s*>|/>)\s*$"

    def _value(self, each: SchemaField) -> str:
        return _one(each) if _has_parts(each) else from_text(_one(each), each.type)

    def _error_reasons(self) -> list[tuple[str, str]]:
        broken = [
            (f"{_one(each)} != '' and {each.quoted} is null", "malformed")
            for each in self._fields
            if not _has_parts(each) and each.type.ddl != "string"
        ]
        twice = [
            (f"size(_headrace_xml.{each.quoted}) > 1", "an element is there twice")
            for each in self._fields
            if _may_be_many(each)
        ]
        return [
            NOT_UTF8,
            (f"_headrace_xml is null or _headrace_xml.{_BAD} is not null", "malformed"),
            ("_headrace_roots != 1 or not _headrace_is_whole", "not one element"),
            ("_headrace_is_other", "another encoding"),
            *twice,
            *broken,
            *((condition, "no number") for condition in self._no_numbers()),
            *missing(self._fields),
        ]

    def _no_numbers(self) -> list[str]:
        return no_numbers({_one(each): each for each in self._fields}, "_headrace_text")

    def explain(self, value: bytes | None) -> str:
        """Say in one sentence why `value` could not be decoded."""
        if not value:
            return "the value is empty"
        if complaint := not_utf8(value):
            return complaint
        if b"<!DOCTYPE" in value:
            return "a document type is not read"  # nor parsed here: entities can grow without end
        if other := _OTHER_ENCODING.match(value.decode()):
            return f"it says that it is {other[1]}, and only UTF-8 is read"
        try:
            root = ElementTree.fromstring(value.decode())
        except (ElementTree.ParseError, ValueError) as error:
            return f"not XML: {error}"
        if root.tag != self.row_tag:
            return f"wanted <{self.row_tag}>, got <{root.tag}>"
        for each in self._fields:
            if _may_be_many(each) and (count := len(root.findall(each.name))) > 1:
                return f"field {each.name}: its element is there {count} times; only an array is"
            found = root.get(each.name[1:]) if each.name.startswith("_") else None
            if found is None and (child := root.find(each.name)) is not None:
                found = child.text or ""
            if _has_parts(each):
                continue
            if complaint := find_cell_mismatch(found, each):
                return complaint
        return f"Spark cannot read it as {describe_fields(self._fields)}"


def check_row_tag(name: str) -> None:
    """Raise PipelineDefinitionError for what is no name of an element."""
    if not _NAME.fullmatch(name):
        raise PipelineDefinitionError(f"row-tag {name!r}: wanted the name of an XML element")


def _may_be_many(each: SchemaField) -> bool:
    """Whether to read an array, so that a second element is seen: attributes come once."""
    return not isinstance(each.type, Array) and not each.name.startswith("_")


def _as_read(each: SchemaField) -> str:
    kind = each.type.ddl if _has_parts(each) else "string"
    return f"array<{kind}>" if _may_be_many(each) else kind


def _one(each: SchemaField) -> str:
    """SQL for what was read of a field."""
    read = f"_headrace_xml.{each.quoted}"
    return f"get({read}, 0)" if _may_be_many(each) else read


def _has_parts(each: SchemaField) -> bool:
    return isinstance(each.type, Array | Map | Struct)
