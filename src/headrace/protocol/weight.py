"""How much there is to encode in a message: its array elements, counted no further than needed."""

import dataclasses
from functools import cache
from typing import Any


def is_heavier(message: Any, limit: int) -> bool:
    """Whether a message holds more than `limit` array elements, at any depth."""
    return _count(message, limit) > limit


def _count(message: Any, limit: int) -> int:
    total = 0
    kind: Any = type(message)
    for name in _field_names(kind):
        elements = getattr(message, name)
        if type(elements) is not tuple or not elements:
            continue
        total += len(elements)
        kind = type(elements[0])
        if not _field_names(kind):
            continue  # numbers or texts
        for element in elements:
            if total > limit:
                return total
            total += _count(element, limit - total)
    return total


@cache
def _field_names(kind: Any) -> tuple[str, ...]:
    """Of kio's message types, and of the named tuples that stand for several versions of one."""
    if dataclasses.is_dataclass(kind):
        return tuple(field.name for field in dataclasses.fields(kind))
    return tuple(getattr(kind, "_fields", ()))
