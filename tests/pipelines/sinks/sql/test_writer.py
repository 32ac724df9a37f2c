"""Batches into tables: each once, whole or not at all, through crashes and lost servers."""

import threading
from typing import Any

import pytest
from tests.pipelines.sinks.sql.tables import KEY, VALUE, TestTable, arrow_rows, give

from headrace.pipelines.errors import SinkError
from headrace.pipelines.sinks.sql import writer
from headrace.pipelines.sinks.sql.columns import Column, TableShape
from headrace.pipelines.sinks.sql.dialect import Connection, Dialect
from headrace.pipelines.sinks.sql.rows import Changes, changes_of
from headrace.pipelines.sinks.sql.writer import OpenSqlTable
from tools.databases import DatabaseServer

COLUMNS = (KEY, VALUE)


def changes(*rows: tuple[Any, ...], **more: Any) -> Changes:
    return changes_of(arrow_rows(COLUMNS, rows, **more), COLUMNS)


def test_rows_are_inserted_updated_and_deleted(table: TestTable) -> None:
    table.write(COLUMNS, [("a", 1), ("b", 2), ("c", 3)])

    table.write(COLUMNS, [("a", 10), ("b", None), ("d", 4), ("never there", None)], deleted=[1, 3])

    assert table.rows(COLUMNS) == [("a", 10), ("c", 3), ("d", 4)]


def test_within_a_batch_the_last_offset_wins(table: TestTable) -> None:
    rows = [("a", 3), ("a", 1), ("b", 1), ("a", 2), ("b", None), ("c", None), ("c", 7)]
    places = [(0, 30), (0, 10), (0, 11), (0, 20), (0, 12), (1, 5), (1, 6)]

    table.write(COLUMNS, rows, places=places, deleted=[4, 5])

    assert table.rows(COLUMNS) == [("a", 3), ("c", 7)]


def test_a_replayed_batch_changes_nothing(table: TestTable) -> None:
    sink = table.sink()
    assert give(sink, changes(("a", 1)), 0, COLUMNS)
    assert give(sink, changes(("a", 2)), 1, COLUMNS)

    assert not give(sink, changes(("a", 1)), 0, COLUMNS)
    assert not give(table.sink(), changes(("a", 99)), 1, COLUMNS)

    assert table.rows(COLUMNS) == [("a", 2)]


def test_an_empty_batch_is_a_batch(table: TestTable) -> None:
    table.write(COLUMNS, [])

    assert table.rows(COLUMNS) == []
    assert not give(table.sink(), changes(("a", 1)), 0, COLUMNS)


def test_each_batch_is_noted_with_its_rows(table: TestTable) -> None:
    table.write(COLUMNS, [("a", 1), ("a", 2), ("b", 1)])

    quote = table.dialect.quote
    found = table.execute(
        f"SELECT app, batch_id, {quote('rows')} FROM headrace_batches "
        f"WHERE table_name = '{table.name}'"
    )
    assert found == [(table.name, 0, 3)]


def test_a_crash_between_load_and_commit_leaves_the_table_as_it_was(
    table: TestTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.write(COLUMNS, [("a", 1)])
    sink = table.sink()

    class CrashError(Exception):
        pass

    def crash(self: Dialect, connection: Connection, shape: TableShape, keys: object) -> None:
        raise CrashError

    with monkeypatch.context() as patched:
        patched.setattr(type(table.dialect), "delete", crash)
        batch = changes(("a", 2), ("b", 2), ("c", None), deleted=[2])
        with pytest.raises(CrashError):
            give(sink, batch, 1, COLUMNS)
    assert table.rows(COLUMNS) == [("a", 1)]

    assert give(sink, batch, 1, COLUMNS)
    assert table.rows(COLUMNS) == [("a", 2), ("b", 2)]


def test_two_pipelines_write_one_table_at_the_same_time(table: TestTable) -> None:
    sinks = {name: table.sink(app_id=f"{table.name} {name}") for name in ("one", "two")}
    batches = 5

    def work(name: str) -> None:
        for batch_id in range(batches):
            rows = [(f"{name} {number}", batch_id) for number in range(200)]
            # The same keys from both: whoever commits last wins, nobody fails.
            rows += [(f"shared {number}", batch_id) for number in range(200)]
            assert give(sinks[name], changes(*rows), batch_id, COLUMNS)

    _in_threads(work, "one", "two")

    read = table.rows(COLUMNS)
    assert len(read) == 600
    assert {value for _, value in read} == {batches - 1}


def test_an_older_attempt_at_the_same_batch_is_locked_out(table: TestTable) -> None:
    """Two drivers with one checkpoint, as after a kill: each batch is written by one of them."""
    table.write(COLUMNS, [])
    sinks = {name: table.sink() for name in ("old", "new")}
    wrote: dict[str, list[bool]] = {"old": [], "new": []}

    def work(name: str) -> None:
        for batch_id in range(1, 6):
            batch = changes(*((f"{batch_id} {name} {number}", 0) for number in range(50)))
            wrote[name].append(give(sinks[name], batch, batch_id, COLUMNS))

    _in_threads(work, "old", "new")

    writers = [sum(pair) for pair in zip(wrote["old"], wrote["new"], strict=True)]
    assert len(table.rows(COLUMNS)) == 50 * sum(writers)
    assert all(count <= 1 for count in writers)


def _in_threads(work: Any, *names: str) -> None:
    failures: list[BaseException] = []

    def guarded(name: str) -> None:
        try:
            work(name)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


@pytest.fixture(params=["postgresql", "mariadb"])
def server_table(request: pytest.FixtureRequest) -> Any:
    server: DatabaseServer = request.getfixturevalue(f"{request.param}_server")
    name = f"s_{request.node.originalname[:40]}"
    with TestTable(server.url, name) as table:
        yield server, table


def test_a_server_that_restarts_between_batches_is_found_again(
    server_table: tuple[DatabaseServer, TestTable],
) -> None:
    server, table = server_table
    sink = table.sink()
    give(sink, changes(("a", 1)), 0, COLUMNS)

    server.stop()
    server.start()

    assert give(sink, changes(("a", 2)), 1, COLUMNS)
    assert table.rows(COLUMNS) == [("a", 2)]
    assert any("Trying again" in sentence for sentence in table.told)


def test_a_server_that_crashes_in_the_middle_of_a_batch_gets_it_whole(
    server_table: tuple[DatabaseServer, TestTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, table = server_table
    sink = table.sink()
    give(sink, changes(("a", 1)), 0, COLUMNS)
    delete, crashes = type(table.dialect).delete, [server.kill]

    def delete_on_a_dead_server(*arguments: Any) -> None:
        if crashes:
            crashes.pop()()
            server.start()
        delete(*arguments)

    monkeypatch.setattr(type(table.dialect), "delete", delete_on_a_dead_server)
    batch = changes(("a", None), ("b", 2), deleted=[0])

    assert give(sink, batch, 1, COLUMNS)

    assert table.rows(COLUMNS) == [("b", 2)]


def test_a_commit_whose_answer_was_lost_is_not_done_twice(
    server_table: tuple[DatabaseServer, TestTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, table = server_table
    sink = table.sink()
    load, losses = OpenSqlTable._load, ["the answer"]

    def load_and_lose_the_answer(*arguments: Any) -> bool:
        has_written = load(*arguments)
        if losses:
            losses.pop()
            raise ConnectionResetError("lost")
        return has_written

    monkeypatch.setattr(OpenSqlTable, "_load", load_and_lose_the_answer)
    monkeypatch.setattr(writer, "RETRY_WAITS_SECONDS", (0.0,))

    assert give(sink, changes(("a", 1)), 0, COLUMNS)
    assert not losses
    assert table.rows(COLUMNS) == [("a", 1)]


def test_a_server_that_stays_away_ends_the_run_with_a_sentence(
    server_table: tuple[DatabaseServer, TestTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, table = server_table
    sink = table.sink()
    monkeypatch.setattr(writer, "RETRY_WAITS_SECONDS", (0.0, 0.0))
    server.stop()
    try:
        with pytest.raises(SinkError, match=r"no server answers; is it running\?"):
            give(sink, changes(("a", 1)), 0, COLUMNS)
        with pytest.raises(SinkError, match=f"127.0.0.1:{server.port}"):
            table.sink()
    finally:
        server.start()
    assert sum("Trying again" in sentence for sentence in table.told) == 2


def test_two_tables_of_one_pipeline_have_a_guard_each(url: str) -> None:
    with TestTable(url, "first of two") as first, TestTable(url, "second of two") as second:
        for table in (first, second):
            assert give(table.sink(app_id="both"), changes(("a", 1)), 0, COLUMNS)

        assert first.rows(COLUMNS) == second.rows(COLUMNS) == [("a", 1)]


def test_a_table_of_nothing_but_its_key_is_a_set(table: TestTable) -> None:
    columns = (KEY, Column("l", "int", is_key=True))
    table.write(columns, [("a", 1), ("b", 1)])

    table.write(columns, [("a", 1), ("b", 1), ("a", 2)], deleted=[1])

    assert table.rows(columns) == [("a", 1), ("a", 2)]
