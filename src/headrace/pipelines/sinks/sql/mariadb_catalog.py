"""A table as MariaDB's and MySQL's information schema has it."""

import itertools
import operator
import re
from collections.abc import Callable, Sequence
from typing import Any

from headrace.pipelines.sinks.sql.existing import ExistingColumn, ExistingTable, UniqueIndex

Quote = Callable[[str], str]

# As bytes, with blanks at the end; utf8mb4_bin takes 'a' and 'a ' for one.
MARIADB_EXACT, MYSQL_EXACT = "utf8mb4_nopad_bin", "utf8mb4_0900_bin"
_KINDS = {
    "tinyint(1)": "boolean",
    "tinyint": "smallint",
    "smallint": "smallint",
    "mediumint": "int",
    "int": "int",
    "bigint": "bigint",
    "float": "float",
    "double": "double",
    "longtext": "string",
    "mediumtext": "string",
    "text": "varchar(16383)",  # 65,535 bytes
    "longblob": "binary",
    "mediumblob": "binary",
    "date": "date",
    "datetime(6)": "timestamp",
    "timestamp(6)": "timestamp",
    "json": "json",
}
_RELATION = """
SELECT t.table_type, t.engine, e.transactions
FROM information_schema.tables AS t
LEFT JOIN information_schema.engines AS e ON e.engine = t.engine
WHERE t.table_schema = DATABASE() AND t.table_name = %s"""
_COLUMNS = """
SELECT column_name, column_type, is_nullable, column_default, extra, collation_name
FROM information_schema.columns
WHERE table_schema = DATABASE() AND table_name = %s ORDER BY ordinal_position"""
_UNIQUE = """
SELECT index_name, column_name, sub_part FROM information_schema.statistics
WHERE table_schema = DATABASE() AND table_name = %s AND non_unique = 0
ORDER BY index_name, seq_in_index"""


def read_table(connection: Any, table: str, quote: Quote) -> ExistingTable | None:
    """The table as it is; None if there is none."""
    with connection.cursor() as cursor:
        cursor.execute(_RELATION, (table,))
        relation = cursor.fetchone()
        if relation is None:
            return None
        cursor.execute(_COLUMNS, (table,))
        found = cursor.fetchall()
        cursor.execute(_UNIQUE, (table,))
        parts = cursor.fetchall()
    columns = tuple(_column(*each[:5]) for each in found)
    inexact = {
        name: _inexact(quote, table, name, declared, collation)
        for name, declared, *_, collation in found
        if not _is_exact(collation)
    }
    unique = tuple(
        _unique_index(name, [(column, size) for _, column, size in of_index], inexact)
        for name, of_index in itertools.groupby(parts, operator.itemgetter(0))
    )
    return ExistingTable(columns, unique, _obstacle(*relation))


def _inexact(quote: Quote, table: str, column: str, declared: str, collation: str) -> str:
    alike = "such as 'a' and 'a '" if collation.endswith("_bin") else "such as A and a"
    return (
        f"takes values of {column} that differ, {alike}, for one key ({collation}); make it "
        f"compare as bytes: ALTER TABLE {quote(table)} MODIFY {quote(column)} "
        f"{declared} CHARACTER SET utf8mb4 COLLATE {MARIADB_EXACT} NOT NULL"
    )


def _obstacle(kind: str, engine: str | None, transactions: str | None) -> str | None:
    if kind not in ("BASE TABLE", "SYSTEM VERSIONED"):
        return f"is a {kind.lower()}, which cannot be written by key; name the table behind it"
    if transactions != "YES":
        return (
            f"is kept by {engine}, which has no transactions: a batch could be written by half; "
            "ALTER TABLE … ENGINE=InnoDB, or choose another table"
        )
    return None


def _column(
    name: str, declared: str, is_nullable: str, default: str | None, extra: str
) -> ExistingColumn:
    extra = extra.lower()
    is_generated = "virtual" in extra or "stored" in extra or "persistent" in extra
    is_counted = "auto_increment" in extra
    is_given = default is not None and default != "NULL"
    return ExistingColumn(
        name,
        declared,
        _kind_of(declared),
        is_required=is_nullable == "NO" and not (is_given or is_counted or is_generated),
        is_generated=is_generated,
        is_distinct_by_default=not is_generated and (not is_given or "uuid(" in str(default)),
        replaces_null=is_counted or (is_nullable == "NO" and declared.startswith("timestamp")),
    )


def _is_exact(collation: str | None) -> bool:
    """Whether two texts are one only if their bytes are; numbers and bytes have no collation."""
    return collation is None or collation.endswith(("_nopad_bin", "_0900_bin"))


def _unique_index(
    name: str, parts: Sequence[tuple[str | None, int | None]], inexact: dict[str, str]
) -> UniqueIndex:
    columns = [column for column, _ in parts if column is not None]
    exact = [each for each, size in parts if each and size is None and each not in inexact]
    flaw = None
    for column, size in parts:
        if column is None:
            flaw = "is on an expression, and no row can be found by it; create one that is not"
        elif size is not None:
            flaw = f"has only the first {size} characters of {column}; create one of the whole"
        elif column in inexact:
            flaw = inexact[column]
    return UniqueIndex(
        name,
        frozenset(exact),
        frozenset(columns) if len(columns) == len(parts) else None,
        flaw,
    )


def _kind_of(declared: str) -> str | None:
    declared = declared.lower()
    if match := re.fullmatch(r"decimal\((\d+),(\d+)\)", declared):
        return f"decimal({match[1]},{match[2]})"
    if match := re.fullmatch(r"varchar\((\d+)\)", declared):
        return f"varchar({match[1]})"
    if declared.startswith("varbinary("):
        return "binary"
    if declared in _KINDS:
        return _KINDS[declared]
    # An integer's width in brackets says nothing about what it holds; `unsigned` does.
    return _KINDS.get(re.sub(r"\(\d+\)$", "", declared)) if "int(" in declared else None
