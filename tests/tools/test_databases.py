"""Database servers for tests: they answer, they stop, they come back with what was committed."""

import contextlib
from pathlib import Path

import pytest

from tools import databases
from tools.databases import (
    DatabaseServerError,
    find_mariadb,
    find_postgresql,
    running_mariadb,
    running_postgresql,
)


def test_postgresql_keeps_what_was_committed_through_a_crash() -> None:
    _needs(find_postgresql)
    import psycopg

    with running_postgresql(is_durable=True) as server:
        with contextlib.closing(psycopg.connect(server.url, autocommit=True)) as connection:
            connection.execute("CREATE TABLE t (a int)")
            connection.execute("INSERT INTO t VALUES (7)")
        directory = server.directory
        server.kill()
        server.start()
        with contextlib.closing(psycopg.connect(server.url)) as connection:
            assert connection.execute("SELECT a FROM t").fetchall() == [(7,)]

    assert not directory.exists()


def test_mariadb_keeps_what_was_committed_through_a_crash() -> None:
    _needs(find_mariadb)
    import pymysql

    with running_mariadb() as server:
        login = {"host": "127.0.0.1", "port": server.port, "user": databases.USER}
        login |= {"password": databases.PASSWORD, "database": databases.DATABASE}
        with contextlib.closing(pymysql.connect(**login)) as connection:
            connection.cursor().execute("CREATE TABLE t (a int)")
            connection.cursor().execute("INSERT INTO t VALUES (7)")
            connection.commit()
        directory = server.directory
        server.kill()
        server.start()
        with contextlib.closing(pymysql.connect(**login)) as connection:
            cursor = connection.cursor()
            cursor.execute("SELECT a FROM t")
            assert cursor.fetchall() == ((7,),)

    assert not directory.exists()


def test_a_machine_without_servers_is_told_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(databases, "_SYSTEM_PATH", str(tmp_path))
    monkeypatch.setattr(databases, "_POSTGRESQL_PATTERNS", ())

    with pytest.raises(DatabaseServerError, match="package postgresql"):
        find_postgresql()
    with pytest.raises(DatabaseServerError, match="package mariadb-server"):
        find_mariadb()


def test_the_newest_packaged_postgresql_comes_first(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for version in ("9", "17"):
        for program in ("initdb", "pg_ctl", "postgres"):
            path = tmp_path / "pg" / version / "bin" / program
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "pg" / "9" / "bin"))
    pattern = str((tmp_path / "pg").relative_to("/") / "*" / "bin")
    monkeypatch.setattr(databases, "_POSTGRESQL_PATTERNS", (pattern,))

    assert [path.parent.name for path in find_postgresql()] == ["17", "9", "9"]


def _needs(find: object) -> None:
    try:
        find()  # type: ignore[operator]
    except DatabaseServerError as error:
        pytest.skip(str(error))
