"""Schema drift: what values of late have that the schema has not, told and never fatal.

The sentences hold no counts: whoever tells them can tell each only once.
"""

import contextlib
import json
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from headrace.pipelines.decoders.ddl import SchemaField
from headrace.pipelines.definition import Decoder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SAMPLE_ROWS = 100  # of one batch: a field in 3 % of values is seen with 95 % certainty
_MIN_SAMPLE = 20  # below this, an absent field says little
_MAX_NEW_FIELDS = 10  # values with keys of their own, such as names of hosts, drift at will


def report_drift(decoder: Decoder, records: "DataFrame") -> list[str]:
    """Sentences about a sample of a batch; nothing for a format without names in its values."""
    drift = getattr(decoder, "drift", None)
    if drift is None:
        return []
    sample = records.select("value").limit(SAMPLE_ROWS).collect()
    found: list[str] = drift([None if row.value is None else bytes(row.value) for row in sample])
    return found


def drift_of_objects(fields: Iterable[SchemaField], sample: Iterable[bytes | None]) -> list[str]:
    """What JSON objects say against the fields of a schema."""
    fields = tuple(fields)
    objects = list(_objects(sample))
    names = Counter(name for each in objects for name, value in each.items() if value is not None)
    examples = {name: value for each in objects for name, value in each.items()}
    known = {each.name for each in fields}
    new = sorted(names.keys() - known)
    sentences = [
        f"field {name} ({_type_of(examples[name])}) is in the values and not in the schema"
        for name in new[:_MAX_NEW_FIELDS]
    ]
    if len(new) > _MAX_NEW_FIELDS:
        sentences.append("many more fields are in the values and not in the schema")
    if len(objects) >= _MIN_SAMPLE:
        sentences += [
            sentence for each in fields if (sentence := _rare(each, names[each.name], len(objects)))
        ]
    return sentences


def _rare(field: SchemaField, count: int, total: int) -> str | None:
    if count == 0:
        return f"field {field.name} of the schema is in no value any more"
    if field.is_required and count * 2 < total:
        return f"field {field.name} is required and missing in more than half of the values"
    return None


def _objects(sample: Iterable[bytes | None]) -> Iterable[dict[str, object]]:
    for value in sample:
        with contextlib.suppress(ValueError, RecursionError):
            found = json.loads(value) if value else None
            if isinstance(found, dict):
                yield found


def _type_of(value: object) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "bigint"
    if isinstance(value, float):
        return "double"
    if isinstance(value, list):
        return "array"
    return "struct" if isinstance(value, dict) else "string"
