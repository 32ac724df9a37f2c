"""A plain consumer's tables: json.loads, executemany with an upsert, commit.

The columns are those the `table` pipeline writes, where the row came from included.
"""

import json
import sqlite3
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from bench.pipelines.databases import pymysql_connection
from bench.pipelines.rows import COLUMNS, KEY

TABLE = "plain"
_ORIGIN = ("_topic", "_partition", "_offset", "_timestamp")
_ALL = (*COLUMNS, *_ORIGIN)


def _row(message: Any) -> tuple[Any, ...]:
    fields = json.loads(message.value() or b"{}")
    return (
        fields[KEY],
        datetime.fromisoformat(fields["at"]).replace(tzinfo=None).isoformat(" "),
        fields["celsius"],
        fields["humidity"],
        fields["battery"],
        fields["number"],
        message.topic(),
        message.partition(),
        message.offset(),
        message.timestamp()[1],
    )


def _create(types: dict[str, str]) -> str:
    columns = ", ".join(f"{name} {types.get(name, types['*'])}" for name in _ALL)
    return f"create table {TABLE} ({columns}, primary key ({KEY}))"


def _upsert(placeholder: str, conflict: str, new: str) -> str:
    columns, values = ", ".join(_ALL), ", ".join([placeholder] * len(_ALL))
    changes = ", ".join(f"{name} = {new.format(name)}" for name in _ALL if name != KEY)
    return f"insert into {TABLE} ({columns}) values ({values}) {conflict} {changes}"


_ON_CONFLICT = f"on conflict ({KEY}) do update set"


class PlainTable:
    """A table of its own, made anew."""

    def __init__(self, connection: Any, upsert: str, types: dict[str, str]) -> None:
        self._connection, self._upsert = connection, upsert
        cursor = connection.cursor()
        cursor.execute(f"drop table if exists {TABLE}")
        cursor.execute(_create(types))
        connection.commit()

    def write(self, messages: Sequence[Any]) -> None:
        cursor = self._connection.cursor()
        cursor.executemany(self._upsert, [_row(message) for message in messages])
        self._connection.commit()

    def close(self) -> None:
        self._connection.close()


def _sqlite(place: str) -> PlainTable:
    connection = sqlite3.connect(place)
    connection.execute("pragma journal_mode = wal")
    connection.execute("pragma synchronous = normal")
    types = {"celsius": "real", "humidity": "real", "battery": "real", "*": "text"}
    types |= dict.fromkeys(("number", "_partition", "_offset", "_timestamp"), "integer")
    return PlainTable(connection, _upsert("?", _ON_CONFLICT, "excluded.{}"), types)


_SERVER_TYPES = {
    KEY: "varchar(64)",
    "at": "timestamp",
    "number": "bigint",
    "_topic": "varchar(249)",
    "_partition": "int",
    "_offset": "bigint",
    "_timestamp": "bigint",
    "*": "double precision",
}


def _postgresql(place: str) -> PlainTable:
    import psycopg

    upsert = _upsert("%s", _ON_CONFLICT, "excluded.{}")
    return PlainTable(psycopg.connect(place), upsert, _SERVER_TYPES)


def _mariadb(place: str) -> PlainTable:
    types = {**_SERVER_TYPES, "at": "datetime(3)"}
    return PlainTable(
        pymysql_connection(place), _upsert("%s", "on duplicate key update", "values({})"), types
    )


TABLES: dict[str, Callable[[str], PlainTable]] = {
    "sqlite": _sqlite,
    "postgresql": _postgresql,
    "mariadb": _mariadb,
}
