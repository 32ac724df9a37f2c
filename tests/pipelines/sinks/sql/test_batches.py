"""What a table has of a run's batches: known by the records they hold, not by their numbers."""

import threading
from typing import Any

import pytest
from tests.pipelines.sinks.sql.tables import KEY, VALUE, TestTable, arrow_rows, give

from headrace.pipelines.sinks.sql.rows import Changes, changes_of
from headrace.pipelines.sinks.sql.writer import (
    BATCHES_TABLE,
    OpenSqlTable,
    WrittenMeanwhileError,
)
from headrace.pipelines.spans import Batch, Log, Spans, Written

COLUMNS = (KEY, VALUE)
LOG = Log("topic", 0, "id")


def a_batch(number: int, start: int, end: int, log: Log = LOG) -> Batch:
    return Batch(number, Spans.of({log: (start, end)}))


def rows_of(batch: Batch, value: int) -> Changes:
    """One row a record: its key is the offset, `value` tells who wrote it."""
    assert batch.holds is not None
    rows = [(f"{offset:03}", value) for _, span in batch.holds for offset in range(*span)]
    return changes_of(arrow_rows(COLUMNS, rows), COLUMNS)


def put(sink: OpenSqlTable, batch: Batch, value: int) -> bool:
    """What a run does: ask the sink what it lacks of a batch, and give it that."""
    left = sink.written().left_of(batch)
    return left is not None and sink.write_changes(rows_of(left, value), COLUMNS, left)


def test_a_number_that_comes_again_with_more_records_adds_what_is_missing(
    table: TestTable,
) -> None:
    sink = table.sink()
    assert put(sink, a_batch(0, 0, 10), value=1)

    assert put(sink, a_batch(0, 0, 20), value=2)
    assert not put(table.sink(), a_batch(0, 5, 20), value=3)

    assert [value for _, value in table.rows(COLUMNS)] == [1] * 10 + [2] * 10
    assert sink.written() == Written(0, Spans({LOG: ((0, 20),)}))


def test_numbers_may_go_back(table: TestTable) -> None:
    for number, start in enumerate(range(0, 30, 10)):
        assert put(table.sink(), a_batch(number, start, start + 10), value=1)

    # An older checkpoint was put back: batch 1 is planned anew, and longer.
    assert put(table.sink(), a_batch(1, 10, 40), value=2)
    assert not put(table.sink(), a_batch(2, 30, 40), value=3)

    assert [value for _, value in table.rows(COLUMNS)] == [1] * 30 + [2] * 10


def test_a_topic_that_was_made_again_is_another_log(table: TestTable) -> None:
    assert put(table.sink(), a_batch(0, 0, 3), value=1)

    assert put(table.sink(), a_batch(0, 0, 3, Log("topic", 0, "another id")), value=2)

    assert [value for _, value in table.rows(COLUMNS)] == [2, 2, 2]


def test_a_batch_without_rows_is_noted(table: TestTable) -> None:
    batch = a_batch(0, 0, 10)
    nothing = changes_of(arrow_rows(COLUMNS, []), COLUMNS)

    assert give(table.sink(), nothing, batch, COLUMNS)

    assert table.sink().written() == Written(0, batch.holds or Spans())


def test_of_many_attempts_at_one_batch_one_is_written(table: TestTable) -> None:
    """Drivers that do not know of each other, each with a connection of its own."""
    sinks = [table.sink() for _ in range(4)]
    batches = [a_batch(number, number * 10, number * 10 + 10) for number in range(5)]
    put(sinks[0], a_batch(99, 1000, 1001), value=0)
    wrote: list[list[bool]] = [[] for _ in sinks]
    failures: list[BaseException] = []

    def work(index: int) -> None:
        try:
            for batch in batches:
                # Not asked first: as if all had asked before any wrote.
                changes = rows_of(batch, index)
                wrote[index].append(sinks[index].write_changes(changes, COLUMNS, batch))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(index,)) for index in range(len(sinks))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert not failures
    assert [sum(each) for each in zip(*wrote, strict=True)] == [1] * len(batches)
    found = table.rows(COLUMNS)
    for number in range(len(batches)):
        assert len({value for _, value in found[number * 10 : number * 10 + 10]}) == 1
    assert sinks[0].written().spans == Spans({LOG: ((0, 50), (1000, 1001))})


def test_an_attempt_that_was_slow_leaves_alone_what_another_wrote(table: TestTable) -> None:
    slow, quick = table.sink(), table.sink()
    batch = a_batch(0, 0, 10)
    left = slow.written().left_of(batch)
    assert left is batch
    assert put(quick, batch, value=2)

    assert not slow.write_changes(rows_of(left, 1), COLUMNS, left)

    assert {value for _, value in table.rows(COLUMNS)} == {2}


def test_an_attempt_of_which_another_wrote_a_part_is_to_be_planned_again(table: TestTable) -> None:
    slow, quick = table.sink(), table.sink()
    batch = a_batch(0, 0, 20)
    assert put(quick, a_batch(0, 0, 10), value=2)

    with pytest.raises(WrittenMeanwhileError) as raised:
        slow.write_changes(rows_of(batch, 1), COLUMNS, batch)

    assert raised.value.is_retriable
    assert put(slow, batch, value=1)
    assert [value for _, value in table.rows(COLUMNS)] == [2] * 10 + [1] * 10


def test_a_note_that_changes_between_reading_and_writing_is_read_again(
    table: TestTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, quick = table.sink(), table.sink()
    others = [a_batch(0, 0, 10), a_batch(1, 50, 60)]
    read = OpenSqlTable._read_note

    def read_then_lose(self: OpenSqlTable, connection: Any) -> Any:
        note = read(self, connection)
        if self is slow and others:
            put(quick, others.pop(), value=2)
        return note

    monkeypatch.setattr(OpenSqlTable, "_read_note", read_then_lose)

    # The first that comes between is of other records, the second of the same.
    assert not slow.write_changes(rows_of(a_batch(0, 0, 10), 1), COLUMNS, a_batch(0, 0, 10))

    assert {value for _, value in table.rows(COLUMNS)} == {2}
    assert len(table.rows(COLUMNS)) == 20


def test_a_note_of_an_earlier_version_is_understood_and_its_table_brought_up_to_date(
    table: TestTable,
) -> None:
    table.write(COLUMNS, [])
    _as_before(table, batch_id=4)
    sink = table.sink()
    assert sink.written() == Written.former(4)

    assert not put(sink, a_batch(4, 0, 10), value=1)
    assert put(sink, a_batch(5, 10, 20), value=1)

    assert sink.written() == Written(5, Spans({LOG: ((10, 20),)}))


def test_what_an_earlier_version_wrote_after_a_later_one_counts_by_its_number(
    table: TestTable,
) -> None:
    sink = table.sink()
    assert put(sink, a_batch(0, 0, 10), value=1)
    table.execute(f"UPDATE headrace_batches SET batch_id = 7 WHERE app = '{table.name}'")

    assert sink.written() == Written.former(7)
    assert put(sink, a_batch(8, 80, 90), value=1)
    assert sink.written() == Written(8, Spans({LOG: ((80, 90),)}))


def test_the_note_of_ten_thousand_partitions_is_held(table: TestTable) -> None:
    spans = Spans.of(
        {Log("a topic", number, "x" * 22): (10**12, 10**13) for number in range(10_000)}
    )
    batch = Batch(0, spans)

    assert give(table.sink(), changes_of(arrow_rows(COLUMNS, []), COLUMNS), batch, COLUMNS)

    assert table.sink().written() == Written(0, spans)


def _as_before(table: TestTable, batch_id: int) -> None:
    """Make `headrace_batches` what the version before left, with one row."""
    names = [column.name for column in BATCHES_TABLE.columns[:5]]
    shown = ", ".join(map(table.dialect.quote, names))
    values = f"'{table.name}', '{table.name}', {batch_id}, 1, '2026-11-18 00:00:00'"
    for column in ("written", "revision"):
        table.execute(f"ALTER TABLE headrace_batches DROP COLUMN {column}")
    table.execute(f"DELETE FROM headrace_batches WHERE app = '{table.name}'")
    table.execute(f"INSERT INTO headrace_batches ({shown}) VALUES ({values})")
