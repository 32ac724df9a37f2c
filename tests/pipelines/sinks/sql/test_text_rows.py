"""Rows as the text that COPY and LOAD DATA read."""

import pyarrow as pa
import pytest

from headrace.pipelines.sinks.sql import text_rows
from headrace.pipelines.sinks.sql.text_rows import text_of


def text(rows: pa.Table, binary_prefix: str = "") -> str:
    return b"".join(text_of(rows, binary_prefix)).decode()


def test_values_are_escaped_and_nulls_are_marked() -> None:
    rows = pa.table(
        {
            "s": ["a\tb\nc\rd\\e", None, ""],
            "i": pa.array([1, None, -1]),
            "b": [True, False, None],
            "x": [b"\x00\xff", None, b""],
        }
    )

    assert text(rows, binary_prefix="\\\\x") == (
        "a\\tb\\nc\\rd\\\\e\t1\t1\t\\\\x00ff\n\\N\t\\N\t0\t\\N\n\t-1\t\\N\t\\\\x\n"
    )


def test_a_slice_of_a_table_is_only_that_slice() -> None:
    rows = pa.table({"s": ["a", None, "c\\", "d"], "x": [b"a", None, b"c", b"d"]})

    assert text(rows.slice(1, 2)) == "\\N\t\\N\nc\\\\\t63\n"


def test_long_tables_come_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_rows, "MAX_PIECE_BYTES", 100)
    rows = pa.table({"s": [f"{number:050d}" for number in range(10)]})

    pieces = list(text_of(rows, ""))

    assert len(pieces) > 1
    assert b"".join(pieces).decode().split() == rows.column(0).to_pylist()


@pytest.mark.parametrize("values", [[], [None], [b""], [b"", None]])
def test_binary_columns_without_a_byte_are_no_trouble(values: list[bytes | None]) -> None:
    rows = pa.table({"x": pa.array(values, pa.binary())})

    assert text(rows) == "".join("\\N\n" if value is None else "\n" for value in values)
