"""What all decoders but `raw` share: `_record`, tombstones, and names that are taken."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING

from headrace.pipelines.decoders.ddl import SchemaField
from headrace.pipelines.definition import ERROR_COLUMN, RECORD_COLUMN
from headrace.pipelines.errors import PipelineDefinitionError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Columns of ours stand beside the fields while a frame is decoded.
OWN_PREFIX = "_headrace_"
CARRIED_COLUMN = "_headrace_carried"
# What a record has that `_record` has not: dead letters need all of it.
CARRIED_FIELDS = "value binary, timestampType int"

_RECORD = (
    "named_struct('key', key, 'topic', topic, 'partition', partition, 'offset', offset, "
    "'timestamp', timestamp, 'headers', headers, 'is_tombstone', value is null) as _record"
)
_CARRIED = f"named_struct('value', value, 'timestampType', timestampType) as {CARRIED_COLUMN}"


class RecordDecoder(ABC):
    """A decoder that can fail. Its frames have its fields, `_record` and `_error`."""

    @property
    def can_fail(self) -> bool:
        """Whether `decode` adds `_error`."""
        return True

    @property
    @abstractmethod
    def fields(self) -> tuple[SchemaField, ...]:
        """What a value has in it."""

    @abstractmethod
    def describe(self) -> str:
        """A few words for people."""

    @abstractmethod
    def explain(self, value: bytes | None) -> str:
        """Say in one sentence why `value` could not be decoded."""

    @abstractmethod
    def _decode(self, records: "DataFrame", also: list[str]) -> "DataFrame":
        """Turn `_record`, `value` and `also` into fields, `_record`, `_error` and `also`."""

    def decode(self, records: "DataFrame") -> "DataFrame":
        """Turn records into fields, `_record` and `_error`; loses no row."""
        return self._decode(records.selectExpr(_RECORD, "value"), [])

    def decode_carrying(self, records: "DataFrame") -> "DataFrame":
        """The same with the bytes that were decoded, in CARRIED_COLUMN."""
        return self._decode(records.selectExpr(_RECORD, "value", _CARRIED), [CARRIED_COLUMN])


def check_names(fields: Iterable[SchemaField]) -> tuple[SchemaField, ...]:
    """Raise PipelineDefinitionError for a field named like a column of ours."""
    fields = tuple(fields)
    for field in fields:
        name = field.name.lower()
        if name in (RECORD_COLUMN, ERROR_COLUMN) or name.startswith(OWN_PREFIX):
            raise PipelineDefinitionError(
                f"field {field.name}: names like this are headrace's own; rename it in the schema"
            )
    return fields


def error_case(reasons: Iterable[tuple[str, str]]) -> str:
    """SQL for `_error`: the first reason whose condition holds; a tombstone has none."""
    whens = " ".join(f"when {condition} then '{reason}'" for condition, reason in reasons)
    return f"case when _record.is_tombstone then null {whens} end as {ERROR_COLUMN}"


def missing(fields: Iterable[SchemaField]) -> list[tuple[str, str]]:
    """For `error_case`: each required field that is null."""
    return [
        (f"{field.quoted} is null", "a required field is missing")
        for field in fields
        if field.is_required
    ]


def describe_fields(fields: Iterable[SchemaField]) -> str:
    """The fields as in `JSON with sensor string, celsius double`."""
    return ", ".join(
        f"{field.name} {field.type.ddl}" + (" not null" if field.is_required else "")
        for field in fields
    )
