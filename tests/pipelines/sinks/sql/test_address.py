"""URLs of databases, good and bad, and what errors say when one cannot be reached."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from tests.pipelines.sinks.sql.tables import KEY, VALUE, TestTable, a_run

from headrace.pipelines.errors import PipelineDefinitionError, SinkError
from headrace.pipelines.sinks.sql import sqlite
from headrace.pipelines.sinks.sql.address import Address, parse_address
from headrace.pipelines.sinks.sql.table import SqlTable
from tools.databases import DatabaseServer


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("sqlite:a/b.db", Address("sqlite", "a/b.db")),
        ("sqlite:/a/b.db", Address("sqlite", "/a/b.db")),
        ("sqlite:///a/b%20c.db", Address("sqlite", "/a/b c.db")),
        ("sqlite:////a/b.db", Address("sqlite", "/a/b.db")),
        ("postgresql://h/d", Address("postgresql", "d", "h", 5432)),
        ("postgres://u@h:1/d", Address("postgresql", "d", "h", 1, "u")),
        ("mysql://u:p%40w@h/d", Address("mariadb", "d", "h", 3306, "u", "p@w")),
        ("mariadb://u:@[::1]:7/d", Address("mariadb", "d", "::1", 7, "u", "")),
    ],
)
def test_a_url_is_taken_apart(url: str, address: Address) -> None:
    assert parse_address(url, frozenset()) == (address, {})


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("oracle://u:secret@h/d", "oracle://u@h/d is no database: write sqlite:PATH"),
        ("sqlite:", "names no file"),
        ("sqlite::memory:", "names no file"),
        ("postgresql://u:secret@/d", "postgresql://u@/d names no host"),
        ("postgresql://u:secret@h", "postgresql://u@h names no database"),
        ("mariadb://h:port/d", "the port is not a number"),
        ("mariadb://h/d?tabel=x", r"\?tabel= is unknown for mariadb; known are .*table"),
    ],
)
def test_a_bad_url_gets_a_sentence_without_its_password(url: str, sentence: str) -> None:
    with pytest.raises(PipelineDefinitionError, match=sentence) as refused:
        SqlTable(url)

    assert "secret" not in str(refused.value)


def test_a_password_may_stand_in_a_file_or_in_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pw").write_text("from file\n")
    monkeypatch.setenv("PGPASSWORD", "from environment")
    found = {
        url: parse_address(f"postgresql://{url}", frozenset())[0].find_password()
        for url in ("u:in-url@h/d", f"u@h/d?password-file={tmp_path / 'pw'}", "u@h/d")
    }

    assert list(found.values()) == ["in-url", "from file", "from environment"]
    with pytest.raises(PipelineDefinitionError, match="password-file=/nowhere cannot be read"):
        parse_address("mariadb://h/d?password-file=/nowhere", frozenset())[0].find_password()


@pytest.fixture(params=["postgresql", "mariadb"])
def server(request: pytest.FixtureRequest) -> DatabaseServer:
    found: DatabaseServer = request.getfixturevalue(f"{request.param}_server")
    return found


def refusal(url: str) -> str:
    with pytest.raises(SinkError) as refused:
        SqlTable(url, "t", ("k",)).open(a_run())
    return str(refused.value)


def test_a_wrong_password_is_said(server: DatabaseServer) -> None:
    sentence = refusal(server.url.replace(":headrace@", ":wrong@"))

    assert f"127.0.0.1:{server.port} does not take the password of user headrace" in sentence
    assert "wrong" not in sentence


def test_a_missing_database_is_said_with_the_command_that_makes_it(server: DatabaseServer) -> None:
    sentence = refusal(server.url.removesuffix("headrace") + "nowhere")

    assert "has no database nowhere; create it: " in sentence


def test_a_user_who_may_not_is_told_so(server: DatabaseServer) -> None:
    with TestTable(server.url, "t") as table:
        if server.scheme == "postgresql":
            table.execute("DROP ROLE IF EXISTS guest")
            table.execute("CREATE ROLE guest LOGIN PASSWORD 'guest'")
        else:
            table.execute("CREATE OR REPLACE USER guest@'127.0.0.1' IDENTIFIED BY 'guest'")
            table.execute("GRANT SELECT ON headrace.* TO guest@'127.0.0.1'")
    url = server.url.replace("headrace:headrace@", "guest:guest@")
    if server.scheme == "postgresql":
        # Anyone may make tables in a database's own schema before PostgreSQL 15.
        url += "?schema=pg_catalog"

    sentence = refusal(url)

    assert sentence.startswith("user guest may not do this in ")
    assert "GRANT" in sentence


def test_a_host_that_is_not_there_is_said(server: DatabaseServer) -> None:
    url = server.url.replace(f":{server.port}", ":1")

    assert "127.0.0.1:1: no server answers; is it running?" in refusal(url)


def test_postgresqls_schema_is_where_the_table_is_made(postgresql_server: DatabaseServer) -> None:
    with TestTable(postgresql_server.url, "t") as table:
        table.execute('CREATE SCHEMA IF NOT EXISTS "my schema"')
    with TestTable(f"{postgresql_server.url}?schema=my+schema", "in a schema") as table:
        table.address, _ = parse_address(table.url, frozenset())
        table.write((KEY, VALUE), [("a", 1)])

        found = table.execute("SELECT schemaname FROM pg_tables WHERE tablename = 'in a schema'")
        assert found == [("my schema",)]


def test_sqlite_says_what_is_wrong_with_its_file(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("this is no database at all, but text " * 100)

    assert f"there is no directory {tmp_path}/no" in refusal(f"sqlite:{tmp_path}/no/a.db")
    assert "is not a SQLite database" in refusal(f"sqlite:{tmp_path}/text.db")


def test_a_locked_sqlite_file_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.01)
    with _locked(tmp_path / "a.db"):
        sentence = refusal(f"sqlite:{tmp_path / 'a.db'}")

    assert "another program has held" in sentence


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("BEGIN IMMEDIATE")
        yield
