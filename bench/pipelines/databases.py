"""The databases the tables are measured in, each on a private directory, durable as it comes."""

import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tools.databases import running_mariadb, running_postgresql

SQLITE, POSTGRESQL, MARIADB = "sqlite", "postgresql", "mariadb"
TITLES = {SQLITE: "SQLite", POSTGRESQL: "PostgreSQL", MARIADB: "MariaDB"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    """One database: where it is, who serves it, and how it is asked."""

    name: str
    url: str  # what the plain consumer takes
    sink_uri: str  # what --to takes
    pid: int | None  # of the server; None for a file
    connect: Callable[[], Any]

    @property
    def title(self) -> str:
        return TITLES[self.name]

    def keys_and_sum(self, table: str) -> tuple[int, int]:
        """How many rows a table has, and the sum of their numbers."""
        with contextlib.closing(self.connect()) as connection:
            cursor = connection.cursor()
            cursor.execute(f"select count(*), sum(number) from {table}")
            keys, total = cursor.fetchone()
        return int(keys), int(total or 0)

    def empty(self) -> None:
        """Drop every table, so that the next pass starts as the first one did."""
        with contextlib.closing(self.connect()) as connection:
            cursor = connection.cursor()
            cursor.execute(_LIST[self.name])
            quote = "`" if self.name == MARIADB else '"'
            for (table,) in cursor.fetchall():
                cursor.execute(f"drop table {quote}{table}{quote}")
            connection.commit()


_LIST = {
    SQLITE: "select name from sqlite_master where type = 'table' and name not like 'sqlite_%'",
    POSTGRESQL: "select tablename from pg_tables where schemaname = 'public'",
    MARIADB: "select table_name from information_schema.tables where table_schema = database()",
}


@contextmanager
def running_database(name: str, scratch: Path) -> Iterator[Database]:
    """Start one; DatabaseServerError where it is not installed."""
    if name == SQLITE:
        path = scratch / "bench.db"
        yield Database(
            name=name,
            url=str(path),
            sink_uri=f"sqlite:///{path.absolute()}",
            pid=None,
            connect=lambda: sqlite3.connect(path),
        )
    elif name == POSTGRESQL:
        with running_postgresql(is_durable=True) as server:
            pid_file = server.directory / "data" / "postmaster.pid"
            yield Database(
                name=name,
                url=server.url,
                sink_uri=server.url,
                pid=int(pid_file.read_text().split()[0]),
                connect=lambda: _psycopg(server.url),
            )
    else:
        with running_mariadb(is_durable=True) as server:
            yield Database(
                name=name,
                url=server.url,
                sink_uri=server.url,
                pid=int((server.directory / "pid").read_text()),
                connect=lambda: pymysql_connection(server.url),
            )


def _psycopg(url: str) -> Any:
    import psycopg

    return psycopg.connect(url)


def pymysql_connection(url: str) -> Any:
    """PyMySQL takes no URL."""
    import pymysql

    parts = urlsplit(url)
    return pymysql.connect(
        host=parts.hostname or "127.0.0.1",
        port=parts.port or 3306,
        user=parts.username or "root",
        password=parts.password or "",
        database=parts.path.strip("/"),
    )
