"""A table as PostgreSQL's catalogue has it."""

import itertools
import operator
import re
from collections.abc import Callable
from typing import Any

from headrace.pipelines.sinks.sql.existing import ExistingColumn, ExistingTable, UniqueIndex

Quote = Callable[[str], str]

_KINDS = {
    "boolean": "boolean",
    "integer": "int",
    "bigint": "bigint",
    "double precision": "double",
    "text": "string",
    "bytea": "binary",
    "date": "date",
    "timestamp with time zone": "timestamp",
    "smallint": "smallint",
    "real": "float",
    # The session's zone is UTC, so text without a zone means the same in both.
    "timestamp without time zone": "timestamp",
    "json": "json",
    "jsonb": "json",
}
_RELATION = """
SELECT relkind::text,
       EXISTS (SELECT FROM pg_rewrite WHERE ev_class = pg_class.oid AND rulename <> '_RETURN')
FROM pg_class WHERE oid = to_regclass(%s)"""
_KINDS_OF_RELATION = {"v": "a view", "m": "a materialized view", "f": "a foreign table"}
_COLUMNS = """
SELECT attname, format_type(atttypid, atttypmod),
       attnotnull AND NOT atthasdef AND attidentity = '',
       attgenerated <> '' OR attidentity = 'a',
       attidentity <> '' OR NOT atthasdef OR pg_get_expr(adbin, adrelid) ~ 'nextval\\(|uuid'
FROM pg_attribute LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped
ORDER BY attnum"""
# Place by place: an index may have a collation other than its column's, and columns beyond its
# key (INCLUDE). The flag of nulls came with PostgreSQL 15.
_UNIQUE = """
SELECT index.relname, attname, k.attnum = 0,
       coalesce(of_index.collisdeterministic AND of_column.collisdeterministic, true),
       indisexclusion, indpred IS NOT NULL, NOT indimmediate, NOT indisvalid,
       coalesce((to_jsonb(i) ->> 'indnullsnotdistinct')::boolean, false)
FROM pg_index AS i JOIN pg_class AS index ON index.oid = indexrelid
CROSS JOIN LATERAL unnest(indkey::int2[], indcollation::oid[]) WITH ORDINALITY
     AS k (attnum, collation_id, place)
LEFT JOIN pg_attribute ON attrelid = indrelid AND pg_attribute.attnum = nullif(k.attnum, 0)
LEFT JOIN pg_collation AS of_index ON of_index.oid = k.collation_id
LEFT JOIN pg_collation AS of_column ON of_column.oid = attcollation
WHERE indrelid = to_regclass(%s) AND (indisunique OR indisexclusion) AND place <= indnkeyatts
ORDER BY index.relname, place"""


def read_table(connection: Any, table: str, quote: Quote) -> ExistingTable | None:
    """The table as it is; None if there is none."""
    name = quote(table)
    relation = connection.execute(_RELATION, (name,)).fetchone()
    if relation is None:
        return None
    columns = tuple(
        ExistingColumn(column, declared, _kind_of(declared), *flags)
        for column, declared, *flags in connection.execute(_COLUMNS, (name,)).fetchall()
    )
    declared = {column.name: column.declared for column in columns}
    places = connection.execute(_UNIQUE, (name,)).fetchall()
    unique = tuple(
        _unique_index(quote, table, declared, list(found))
        for _, found in itertools.groupby(places, operator.itemgetter(0))
    )
    return ExistingTable(columns, unique, _obstacle(*relation))


def _unique_index(
    quote: Quote, table: str, declared: dict[str, str], places: list[tuple[Any, ...]]
) -> UniqueIndex:
    name, *_, is_exclusion, is_partial, is_deferrable, is_invalid, are_nulls_alike = places[0]
    columns = [column for _, column, is_expression, *_ in places if not is_expression]
    exact = [column for _, column, _, is_exact, *_ in places if column and is_exact]
    inexact = [column for column in columns if column not in exact]
    flaw = None
    if inexact:
        column = quote(inexact[0])
        flaw = (
            f"takes values of {inexact[0]} that differ, such as A and a, for one key; make it "
            f"compare as bytes: ALTER TABLE {quote(table)} ALTER COLUMN {column} "
            f'TYPE {declared[inexact[0]]} COLLATE "C"'
        )
    elif is_exclusion or is_partial or is_deferrable or is_invalid:
        what = "an exclusion constraint" if is_exclusion else "partial"
        what = "deferrable" if is_deferrable else "not valid" if is_invalid else what
        flaw = f"is {what}, and no row can be found by it; create one that is not"
    return UniqueIndex(
        name,
        frozenset(exact) if not is_exclusion else frozenset(),
        frozenset(columns) if len(columns) == len(places) else None,
        flaw,
        are_nulls_alike,
    )


def _obstacle(kind: str, has_rules: bool) -> str | None:
    if kind not in "rp":  # tables, and tables in partitions
        what = _KINDS_OF_RELATION.get(kind, "no table")
        return f"is {what}, which cannot be written by key; name the table behind it"
    if has_rules:
        return (
            "has rules (CREATE RULE), with which nothing can be written by key; "
            "drop them, or make them triggers"
        )
    return None


def _kind_of(declared: str) -> str | None:
    if match := re.fullmatch(r"numeric\((\d+),(\d+)\)", declared):
        return f"decimal({match[1]},{match[2]})"
    if declared == "numeric":
        return "decimal(1000,500)"  # without digits it holds any number
    if match := re.fullmatch(r"character varying\((\d+)\)", declared):
        return f"varchar({match[1]})"
    if declared == "character varying":
        return "string"
    return _KINDS.get(declared)
