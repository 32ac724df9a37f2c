"""What a batch changes: the last row of each key, with values every database can hold."""

from datetime import date

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.pipelines.sinks.sql.tables import KEY, VALUE, arrow_rows

from headrace.pipelines.errors import SinkError
from headrace.pipelines.refusal import RowsRefusedError
from headrace.pipelines.sinks.sql.columns import Column
from headrace.pipelines.sinks.sql.rows import changes_of

COLUMNS = (KEY, VALUE)
MESSAGES = st.lists(
    st.tuples(st.sampled_from("abcd"), st.none() | st.integers(0, 9), st.integers(0, 2)),
    max_size=30,
)


@given(messages=MESSAGES, order=st.randoms(use_true_random=False))
def test_a_batch_is_the_log_played_to_its_end(
    messages: list[tuple[str, int | None, int]], order: object
) -> None:
    """Messages are key, value (None deletes) and partition; their order in the frame is any."""
    log = [
        (key, value, (partition, offset)) for offset, (key, value, partition) in enumerate(messages)
    ]
    expected: dict[str, int | None] = {}
    for key, value, _ in sorted(log, key=lambda message: message[2]):
        expected[key] = value
    order.shuffle(log)  # type: ignore[attr-defined]

    changes = changes_of(
        arrow_rows(
            COLUMNS,
            [(key, value) for key, value, _ in log],
            places=[place for *_, place in log],
            deleted=[index for index, (_, value, _) in enumerate(log) if value is None],
        ),
        COLUMNS,
    )

    upserts = zip(*(column.to_pylist() for column in changes.upserts.columns), strict=True)
    deletes = changes.deletes.column(0).to_pylist()
    assert dict(upserts) == {key: value for key, value in expected.items() if value is not None}
    assert sorted(deletes) == sorted(key for key, value in expected.items() if value is None)
    assert changes.row_count == len(messages)


def test_rows_of_one_record_keep_their_order() -> None:
    rows = arrow_rows(COLUMNS, [("a", 1), ("a", 2), ("a", 3)], places=[(0, 7)] * 3)

    assert changes_of(rows, COLUMNS).upserts.column(1).to_pylist() == [3]


def test_between_topics_the_name_decides_whatever_the_order() -> None:
    rows = arrow_rows(COLUMNS, [("a", 1), ("a", 2)], places=[(0, 9), (0, 1)])
    rows = rows.set_column(2, "topic", pa.array(["x", "y"]))

    for frame in (rows, rows.take([1, 0])):
        assert changes_of(frame, COLUMNS).upserts.column(1).to_pylist() == [2]


def test_a_frame_without_records_needs_keys_that_occur_once() -> None:
    rows = arrow_rows(COLUMNS, [("a", 1), ("b", 2)], has_record=False)
    assert changes_of(rows, COLUMNS).upserts.num_rows == 2

    rows = arrow_rows(COLUMNS, [("a", 1), ("b", 2), ("a", 3)], has_record=False)
    with pytest.raises(SinkError, match="the key a is there twice in one batch"):
        changes_of(rows, COLUMNS)


def test_a_null_key_is_named_by_its_place() -> None:
    rows = arrow_rows(COLUMNS, [("a", 1), (None, 2)], places=[(3, 41), (3, 42)])

    with pytest.raises(RowsRefusedError, match="topic-3 at offset 42: the key column k is null"):
        changes_of(rows, COLUMNS)

    rows = arrow_rows(COLUMNS, [("a", 1), (None, 2)], has_record=False)
    with pytest.raises(SinkError, match="key column k is null, in row 1 of the batch"):
        changes_of(rows, COLUMNS)


def test_bytes_that_are_not_utf8_become_replacement_characters() -> None:
    offsets = pa.py_buffer(b"\0\0\0\0\3\0\0\0\4\0\0\0")
    broken = pa.StringArray.from_buffers(2, offsets, pa.py_buffer(b"a\xff\0b"))
    rows = arrow_rows((KEY, Column("v", "string")), [("a", ""), ("b", "")])
    rows = rows.set_column(1, "1", broken)

    changes = changes_of(rows, (KEY, Column("v", "string")))

    assert changes.upserts.column(1).to_pylist() == ["a\ufffd\ufffd", "b"]
    assert changes.notes == {
        "v": "column v: 1 value no table holds replaced, the first in topic-0 at offset 0"
    }


@pytest.mark.parametrize(("kind", "day"), [("date", 1), ("timestamp", 86_400_000_000)])
def test_dates_outside_the_years_1_to_9999_become_null(kind: str, day: int) -> None:
    columns = (KEY, Column("v", kind))
    arrow = pa.int32() if kind == "date" else pa.int64()
    inside = [-719_162 * day, 2_932_896 * day + day - 1]
    numbers = pa.array([inside[0] - 1, *inside, inside[1] + 1, None], arrow)
    rows = arrow_rows(columns, [(key, None) for key in "abcde"])
    rows = rows.set_column(1, "1", numbers.cast(rows.column(1).type))

    held = changes_of(rows, columns).upserts.column(1)

    assert held.cast(arrow).to_pylist() == [None, *inside, None, None]
    assert [str(year)[:4] for year in held.cast(pa.string())[1:3].to_pylist()] == ["0001", "9999"]


def test_keys_are_measured_in_characters_or_bytes() -> None:
    columns = (KEY, Column("b", "binary", is_key=True))
    rows = arrow_rows(columns, [("ßß", b"\0\0")])

    assert len(changes_of(rows, columns, lambda column: 2)) == 1
    with pytest.raises(RowsRefusedError, match=r"value of length 2; .* takes 1$"):
        changes_of(rows, columns, lambda column: 1 if column.kind == "string" else 2)
    with pytest.raises(RowsRefusedError, match="key column b has a value of length 2"):
        changes_of(rows, columns, lambda column: 1 if column.kind == "binary" else 2)


def test_rows_whose_key_no_table_holds_are_refused_and_not_made_one() -> None:
    columns = (KEY, Column("at", "date", is_key=True))
    rows = arrow_rows(columns, [("a", date(2026, 1, 1)), ("a\0", date(2026, 1, 1)), ("a", None)])
    late = pa.array([0, 0, 2_932_897], pa.int32()).cast(pa.date32())
    rows = rows.set_column(1, "1", late)

    with pytest.raises(RowsRefusedError) as refused:
        changes_of(rows, columns)

    assert [(row.topic, row.partition, row.offset) for row in refused.value.rows] == [
        ("topic", 0, 1),
        ("topic", 0, 2),
    ]
    assert "key column k has a value no table holds: U+0000" in refused.value.rows[0].reason
    assert "key column at has a value no table holds" in refused.value.rows[1].reason


def test_a_part_of_the_changes_knows_its_rows_and_their_places() -> None:
    rows = arrow_rows(COLUMNS, [("a", 1), ("b", 2), ("c", None), ("d", None)], deleted=[2, 3])
    changes = changes_of(rows, COLUMNS)

    ones = [changes.part(number, number + 1) for number in range(len(changes))]

    assert [(one.key(), one.place()) for one in ones] == [
        (key, ("topic", 0, offset)) for offset, key in enumerate("abcd")
    ]
    middle = changes.part(1, 3)
    assert (middle.upserts.num_rows, middle.deletes.num_rows) == (1, 1)
