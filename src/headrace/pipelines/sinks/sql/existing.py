"""A table as the database has it, and whether rows can be written into it by key, without harm.

What is refused here would otherwise be a silent loss, or an error in the middle of a run: a key
that the database does not compare as bytes, a second unique index by which a row is taken for
another's, a table that is none. A row that breaks a rule of the table (CHECK, NOT NULL, a foreign
key, a length) is no matter of the table: `row_faults` finds it.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from headrace.pipelines.errors import SinkError
from headrace.pipelines.sinks.sql.columns import Column, TableShape

Fold = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class ExistingColumn:
    """A column as the database has it; `kind` is None for a type no frame has."""

    name: str
    declared: str
    kind: str | None
    # Not null and without a default: every insert has to give it.
    is_required: bool = False
    # The database computes it, and takes no value.
    is_generated: bool = False
    # What an insert that does not give it leaves there is never equal to another's: null, or the
    # next number.
    is_distinct_by_default: bool = False
    # Null that is given becomes a value of the database's own.
    replaces_null: bool = False


@dataclass(frozen=True, slots=True)
class UniqueIndex:
    """What may not occur twice in a table."""

    name: str
    # The columns it compares whole and as bytes.
    exact: frozenset[str]
    # Every column that it looks at; None: an expression, which may look at any.
    columns: frozenset[str] | None
    # Why a row cannot be found by it, with the fix; None: it can.
    flaw: str | None = None
    are_nulls_alike: bool = False

    def __str__(self) -> str:
        what = "an expression" if self.columns is None else ", ".join(sorted(self.columns))
        return f"{self.name} on ({what})"


@dataclass(frozen=True, slots=True)
class ExistingTable:
    """A table as the database has it."""

    columns: tuple[ExistingColumn, ...]
    unique: tuple[UniqueIndex, ...]
    # Why nothing can be written into it whatever the rows, with the fix: it is a view.
    obstacle: str | None = None


def check_key(table: str, key: Iterable[str], existing: ExistingTable, fold: Fold) -> None:
    """Raise SinkError unless rows of `existing` can be found by these columns."""
    if existing.obstacle is not None:
        raise SinkError(f"{table} {existing.obstacle}")
    names = list(key)
    wanted = {fold(name) for name in names}
    on_key = [each for each in existing.unique if _folded(each.columns, fold) == wanted]
    if any(each.flaw is None for each in on_key):
        return
    shown = ", ".join(names)
    if on_key:
        raise SinkError(
            f"table {table} cannot be written by the key ({shown}): "
            f"its unique index {on_key[0].name} {on_key[0].flaw}"
        )
    has = " and ".join(
        f"({', '.join(sorted(each.columns))})" for each in existing.unique if each.columns
    )
    raise SinkError(
        f"table {table} has no unique index on the key ({shown}) but on {has or 'nothing'}"
        "; create one, correct the option key, or choose another table"
    )


def check_other_indexes(shape: TableShape, existing: ExistingTable, fold: Fold) -> None:
    """Raise SinkError if a row could collide with the row of another key."""
    key = {fold(column.name) for column in shape.key}
    written = {fold(column.name) for column in shape.columns}
    found = {fold(column.name): column for column in existing.columns}
    for index in existing.unique:
        columns = _folded(index.columns, fold)
        if key <= {fold(name) for name in index.exact}:
            continue  # two rows that are alike for it are one row
        is_ours = columns is None or any(
            name in written
            # Made from what is written, unless it is the next number.
            or (found[name].is_generated and not found[name].is_distinct_by_default)
            for name in columns
        )
        is_apart = any(found[name].is_distinct_by_default for name in columns or ())
        if is_ours or index.are_nulls_alike or not is_apart:
            why = "which this pipeline fills" if is_ours else "whose default is not unique"
            raise SinkError(
                f"table {shape.name} has, beside its key, the unique index {index}, {why}: rows of "
                "different keys would collide there, and one would be lost; drop that index or "
                "make it one that is not unique, leave its columns out, make it the key with the "
                "option key, or write to another table"
            )


def check_columns(shape: TableShape, existing: ExistingTable, fold: Fold) -> None:
    """Raise SinkError if a column cannot be given its value, or is left without one."""
    written: dict[str, Column] = {fold(column.name): column for column in shape.columns}
    for column in existing.columns:
        is_written = fold(column.name) in written
        if is_written and column.is_generated:
            raise SinkError(
                f"table {shape.name}: column {column.name} is computed by the database and takes "
                "no value; drop it in the transform, or choose another table"
            )
        if not is_written and column.is_required:
            raise SinkError(
                f"table {shape.name}: column {column.name} may not be null and has no default, but "
                "is not in the frame; give it a default, or add it in the transform"
            )


def _folded(names: Iterable[str] | None, fold: Fold) -> set[str] | None:
    return None if names is None else {fold(name) for name in names}
