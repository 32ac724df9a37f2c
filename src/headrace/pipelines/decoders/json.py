"""JSON objects, one a value, read by Spark's own parser into the fields of a schema.

Spark takes some things for JSON that are none; what is refused beyond its own rules stands in
`_error_reasons`. docs/pipelines/formats.md tells what becomes of each odd value, and the tests
hold it.
"""

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn

from headrace.pipelines.decoders.conversions import as_read, converted, is_broken
from headrace.pipelines.decoders.ddl import Atom, SchemaField, parse_ddl
from headrace.pipelines.decoders.json_values import find_mismatch, kind_of
from headrace.pipelines.decoders.record_decoder import (
    RecordDecoder,
    check_names,
    describe_fields,
    error_case,
    missing,
)
from headrace.pipelines.decoders.text import NOT_UTF8, not_utf8

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_OPTIONS = {
    "mode": "PERMISSIVE",
    "columnNameOfCorruptRecord": "_headrace_bad",
    "allowSingleQuotes": "false",
    "allowNonNumericNumbers": "false",
}
_SQL_OPTIONS = "map({})".format(", ".join(f"'{k}', '{v}'" for k, v in _OPTIONS.items()))
# Spark reads one object and ignores what follows it. In a list before a mark of ours nothing can
# follow unseen. That is a second parse; where the first brace closes the text it is not needed.
_ALONE = '[{},{"_headrace_end":true}]'
_HAS_MORE = (
    "not (instr(_headrace_text, '}') = char_length(_headrace_text) or coalesce(to_json(from_json("
    "concat('{\"_\":[', _headrace_text, ',{\"_headrace_end\":true}]}'), "
    f"'_ array<struct<_headrace_end:boolean>>, _headrace_bad string', {_SQL_OPTIONS})._) "
    f"= '{_ALONE}', false))"
)
# `\\ud83d` alone is half of a character: Spark makes a question mark of it. Doubled backslashes
# are taken out first, since between them a single one always starts an escape.
_HALF = (
    r"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|"
    r"(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)
_HAS_HALF = (
    "instr(_headrace_text, concat(chr(92), 'u')) > 0 and "
    "replace(_headrace_text, repeat(chr(92), 2), '  ') "
    "rlike '{}'".format(_HALF.replace("\\", "\\\\"))
)


@dataclass(frozen=True)
class Json(RecordDecoder):
    """`Json("sensor string not null, celsius double, at timestamp")`."""

    schema: str
    _fields: tuple[SchemaField, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Read the schema, which raises PipelineDefinitionError."""
        object.__setattr__(self, "_fields", check_names(parse_ddl(self.schema)))

    @property
    def fields(self) -> tuple[SchemaField, ...]:
        """What a value has in it."""
        return self._fields

    def describe(self) -> str:
        """A few words for people."""
        return f"JSON with {describe_fields(self._fields)}"

    def _decode(self, records: "DataFrame", also: list[str]) -> "DataFrame":
        from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

        schema = ", ".join(f"{each.quoted} {as_read(each.type).ddl}" for each in self._fields)
        text = F.col("value").cast("string")
        parsed = records.select(
            text.alias("_headrace_text"),
            F.from_json(text, f"{schema}, _headrace_bad string", _OPTIONS).alias("_headrace_json"),
            "_record",
            *also,
        )
        # A step of its own, so that what is converted is also there to be looked at.
        fields = parsed.selectExpr(
            *(
                f"{converted(f'_headrace_json.{each.quoted}', each.type)} as {each.quoted}"
                for each in self._fields
            ),
            "_headrace_text",
            "_headrace_json",
            "_record",
            *also,
        )
        names = [each.quoted for each in self._fields]
        return fields.selectExpr(*names, "_record", error_case(self._error_reasons()), *also)

    def _error_reasons(self) -> list[tuple[str, str]]:
        broken = []
        for each in self._fields:
            read = f"_headrace_json.{each.quoted}"
            if isinstance(each.type, Atom) and as_read(each.type) != each.type:
                broken.append(f"({read} is not null and {each.quoted} is null)")
            elif inside := is_broken(read, each.type):
                broken.append(inside)
        return [
            NOT_UTF8,
            ("_headrace_json is null or _headrace_json._headrace_bad is not null", "malformed"),
            (_HAS_HALF, "half a character"),
            *((condition, "malformed") for condition in broken),
            *missing(self._fields),
            (_HAS_MORE, "not one JSON object"),
        ]

    def explain(self, value: bytes | None) -> str:
        """Say in one sentence why `value` could not be decoded."""
        if not value:
            return "the value is empty"
        if complaint := not_utf8(value):
            return complaint
        try:
            found = json.loads(value.decode(), parse_constant=_refuse_constant)
        except json.JSONDecodeError as error:
            return f"not JSON: {error.msg.removesuffix(' at')} at character {error.pos + 1}"
        except (ValueError, RecursionError) as error:
            return f"not JSON: {error}"
        if half := re.search(_HALF, value.decode().replace("\\\\", "  ")):
            return f"half a character, {half[0]}, at character {half.start() + 1}"
        if not isinstance(found, dict):
            return f"wanted a JSON object, got {kind_of(found)}"
        for each in self._fields:
            if complaint := find_mismatch(found.get(each.name), each, each.name in found):
                return complaint
        return f"Spark cannot read it as {describe_fields(self._fields)}"

    def drift(self, sample: list[bytes | None]) -> list[str]:
        """What values of late have that the schema has not, and the other way round."""
        from headrace.pipelines.decoders.drift import drift_of_objects

        return drift_of_objects(self._fields, sample)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number in JSON")
