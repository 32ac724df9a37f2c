"""Which part of a topic can matter to a query: its filters, read off Spark's optimised plan.

In that plan constants are folded (`now() - interval 1 hour` is a time) and filters stand right
above what they filter. A bound never leaves out a row the query needs: a filter that is not
understood bounds nothing.
"""

import re
from dataclasses import dataclass, replace
from typing import Any

# Beyond this many alternatives a hull costs less than it saves.
MAX_ALTERNATIVES = 64

_ASSIGNED = re.compile(r"KafkaRelation\(strategy=Assign\[([^\],]+)")
_TYPES = {"timestamp": "timestamp", "offset": "bigint", "partition": "int"}
_MIRRORED = {
    "GreaterThan": "LessThan",
    "GreaterThanOrEqual": "LessThanOrEqual",
    "LessThan": "GreaterThan",
    "LessThanOrEqual": "GreaterThanOrEqual",
    "EqualTo": "EqualTo",
    "EqualNullSafe": "EqualNullSafe",
}


@dataclass(frozen=True)
class RecordBounds:
    """Records with all of these; bounds are inclusive, None bounds nothing."""

    from_ms: int | None = None
    to_ms: int | None = None
    from_offset: int | None = None
    to_offset: int | None = None
    partitions: frozenset[int] | None = None

    def meet(self, other: "RecordBounds") -> "RecordBounds":
        """What is in both."""
        partitions = self.partitions
        if partitions is None:
            partitions = other.partitions
        elif other.partitions is not None:
            partitions = partitions & other.partitions
        return RecordBounds(
            _greater(self.from_ms, other.from_ms),
            _less(self.to_ms, other.to_ms),
            _greater(self.from_offset, other.from_offset),
            _less(self.to_offset, other.to_offset),
            partitions,
        )

    def is_inside(self, other: "RecordBounds", margin_ms: int) -> bool:
        """Whether `other`, with `margin_ms` more at its end, has all of this."""
        return self.meet(replace(other, to_ms=_plus(other.to_ms, margin_ms))) == self


EVERYTHING = (RecordBounds(),)
NOTHING: tuple[RecordBounds, ...] = ()
Alternatives = tuple[RecordBounds, ...]  # any of them


def bounds_of(plan: Any) -> dict[str, Alternatives]:
    """What an optimised plan needs of each topic it reads."""
    found = dict[str, Alternatives]()
    leaves = 0
    pending = [plan]
    while pending:
        node = pending.pop()
        kind = _kind(node)
        if kind == "Filter" and (topic := _topic(node.child())):
            alternatives = alternatives_of(node.condition())
            pending += _items(node.subqueries())
        elif topic := _topic(node):
            alternatives = EVERYTHING
        else:
            pending += [*_items(node.children()), *_items(node.subqueries())]
            continue
        leaves += 1
        found[topic] = _either(found.get(topic, NOTHING), alternatives)
    text = plan.toString()
    if leaves != len(_ASSIGNED.findall(text)):  # one stands where nobody looked
        return dict.fromkeys(found, EVERYTHING)
    return found


def alternatives_of(condition: Any) -> Alternatives:
    """The records a condition may hold for, and perhaps others."""
    kind = _kind(condition)
    if kind == "And":
        left, right = alternatives_of(condition.left()), alternatives_of(condition.right())
        met = tuple(dict.fromkeys(one.meet(other) for one in left for other in right))
        return met if len(met) <= MAX_ALTERNATIVES else min(left, right, key=len)
    if kind == "Or":
        return _either(alternatives_of(condition.left()), alternatives_of(condition.right()))
    if kind == "Literal":
        return NOTHING if condition.value() is False else EVERYTHING
    if kind in _MIRRORED:
        left, right = condition.left(), condition.right()
        if _kind(left) == "Literal":
            left, right, kind = right, left, _MIRRORED[kind]
        return _compared(_column(left), kind, _constant(left, right))
    if kind == "In":
        column = condition.value()
        return _any_of(
            _column(column), [_constant(column, each) for each in _items(condition.list())]
        )
    if kind == "InSet":
        return _any_of(_column(condition.child()), _items(condition.hset()))
    return EVERYTHING


def _compared(column: str | None, kind: str, value: int | None) -> Alternatives:
    if column is None or value is None:
        return EVERYTHING
    if column == "partition":
        # Only equality names partitions; nobody compares them otherwise.
        return (
            (RecordBounds(partitions=frozenset({value})),)
            if kind.startswith("Equal")
            else EVERYTHING
        )
    is_from = kind in ("GreaterThan", "GreaterThanOrEqual", "EqualTo", "EqualNullSafe")
    is_to = kind in ("LessThan", "LessThanOrEqual", "EqualTo", "EqualNullSafe")
    if column == "timestamp":
        value_ms = value // 1000  # Spark counts microseconds; a bound may be too wide by one
        return (
            RecordBounds(from_ms=value_ms if is_from else None, to_ms=value_ms if is_to else None),
        )
    low = value + (kind == "GreaterThan")
    high = value - (kind == "LessThan")
    return (RecordBounds(from_offset=low if is_from else None, to_offset=high if is_to else None),)


def _any_of(column: str | None, values: list[Any]) -> Alternatives:
    known = [value for value in values if isinstance(value, int)]
    if column is None or not known or len(known) < len(values):
        return EVERYTHING
    if column == "partition":
        return (RecordBounds(partitions=frozenset(known)),)
    (low,) = _compared(column, "GreaterThanOrEqual", min(known))
    (high,) = _compared(column, "LessThanOrEqual", max(known))
    return (low.meet(high),)


def _either(one: Alternatives, other: Alternatives) -> Alternatives:
    joined = tuple(dict.fromkeys([*one, *other]))
    return EVERYTHING if RecordBounds() in joined or len(joined) > MAX_ALTERNATIVES else joined


def _column(expression: Any) -> str | None:
    """The record's column that an expression is, without any function around it."""
    if _kind(expression) != "AttributeReference":
        return None
    name = str(expression.name())
    return name if expression.dataType().simpleString() == _TYPES.get(name) else None


def _constant(column: Any, expression: Any) -> int | None:
    """The value of a literal that has its column's own type."""
    if _kind(expression) != "Literal":
        return None
    if expression.dataType().simpleString() != column.dataType().simpleString():
        return None
    value = expression.value()
    return value if isinstance(value, int) else None


def _topic(node: Any) -> str | None:
    if _kind(node) != "LogicalRelation":
        return None
    match = _ASSIGNED.match(node.relation().toString())
    return match[1].rpartition("-")[0] if match else None


def _kind(node: Any) -> str:
    return str(node.getClass().getSimpleName())


def _items(collection: Any) -> list[Any]:
    """A Scala collection's elements."""
    iterator = collection.iterator()
    found = list[Any]()
    while iterator.hasNext():
        found.append(iterator.next())
    return found


def _greater(one: int | None, other: int | None) -> int | None:
    return max(one, other) if one is not None and other is not None else _some(one, other)


def _less(one: int | None, other: int | None) -> int | None:
    return min(one, other) if one is not None and other is not None else _some(one, other)


def _some(one: int | None, other: int | None) -> int | None:
    return other if one is None else one


def _plus(value: int | None, more: int) -> int | None:
    return None if value is None else value + more
