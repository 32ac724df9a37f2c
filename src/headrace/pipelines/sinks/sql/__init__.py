"""Rows into an SQL table by key: SQLite, PostgreSQL, MariaDB; each batch once."""

from headrace.pipelines.sinks.sql.table import SqlTable, from_uri

__all__ = ["SqlTable", "from_uri"]
