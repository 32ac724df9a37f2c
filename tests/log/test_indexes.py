from pathlib import Path

import pytest

from headrace.log.index_cache import IndexCache
from headrace.log.offset_index import OffsetIndex, find_file_fault
from headrace.log.time_index import TimeIndex


def offset_index(path: Path, entries: list[tuple[int, int]]) -> OffsetIndex:
    index = OffsetIndex(path, 1000, is_new=True)
    for offset, position in entries:
        index.append(offset, position)
    return index


def test_an_offset_is_looked_up_at_or_before(tmp_path: Path) -> None:
    index = offset_index(tmp_path / "i", [(1009, 500), (1019, 900)])

    found = {offset: index.lookup(offset) for offset in (900, 1008, 1009, 1018, 1019, 5000)}

    assert found == {900: 0, 1008: 0, 1009: 500, 1018: 500, 1019: 900, 5000: 900}
    assert [index.boundary_before(p) for p in (499, 500, 899, 10_000)] == [0, 500, 500, 900]


def test_entries_reach_the_file_in_pieces_and_come_back(tmp_path: Path) -> None:
    index = offset_index(tmp_path / "i", [(1009, 500)])
    index.flush()
    index.append(1019, 900)
    assert index.has_pending
    index.flush()

    assert (tmp_path / "i").read_bytes().hex() == "00000009000001f40000001300000384"
    loaded = OffsetIndex(tmp_path / "i", 1000)
    assert loaded.load(1000) is None
    assert (loaded.offsets, loaded.positions) == (index.offsets, index.positions)
    assert not loaded.has_pending


def test_truncating_shortens_file_and_memory(tmp_path: Path) -> None:
    index = offset_index(tmp_path / "i", [(1009, 500), (1019, 900)])
    index.flush()

    index.truncate(1)

    assert (tmp_path / "i").stat().st_size == 8
    assert index.lookup(2000) == 500


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("00000009000001f4ff", "not a multiple"),
        ("00000009000001f400000009000001f5", "increase by offset"),
        ("00000009000001f40000000a000001f4", "increase by position"),
        ("ffffffff00000001", "negative"),
        ("0000000900001000", "points to byte 4096"),
    ],
)
def test_an_offset_index_that_makes_no_sense_is_refused(
    tmp_path: Path, content: str, fault: str
) -> None:
    (tmp_path / "i").write_bytes(bytes.fromhex(content))

    found = OffsetIndex(tmp_path / "i", 0).load(4096)

    assert found is not None
    assert fault in found


def test_a_missing_offset_index_is_a_fault(tmp_path: Path) -> None:
    assert find_file_fault(tmp_path / "none", 10) == "the file is missing"
    assert OffsetIndex(tmp_path / "none", 0).load(10) == "the file is missing"


def test_time_entries_are_added_only_for_later_times(tmp_path: Path) -> None:
    index = TimeIndex(tmp_path / "t", 100)
    for timestamp, offset in ((50, 104), (50, 109), (40, 112), (60, 120)):
        index.maybe_append(timestamp, offset)
    index.flush()

    assert (tmp_path / "t").read_bytes().hex() == (
        "000000000000003200000004" + "000000000000003c00000014"
    )


def test_times_are_looked_up_in_file_and_memory_alike(tmp_path: Path) -> None:
    index = TimeIndex(tmp_path / "t", 100)
    index.maybe_append(50, 104)
    index.maybe_append(60, 120)
    expected = {49: 100, 50: 104, 59: 104, 60: 120, 99: 120}

    assert {t: index.lookup(t) for t in expected} == expected
    index.flush()
    assert {t: index.lookup(t) for t in expected} == expected
    index.maybe_append(70, 130)
    assert {t: index.lookup(t) for t in (49, 60, 70)} == {49: 100, 60: 120, 70: 130}


def test_a_time_index_opens_with_its_last_entry(tmp_path: Path) -> None:
    index = TimeIndex(tmp_path / "t", 100)
    index.maybe_append(50, 104)
    index.maybe_append(60, 120)
    index.flush()

    opened = TimeIndex(tmp_path / "t", 100)

    assert opened.open() is None
    assert (opened.count, opened.last_timestamp, opened.last_offset) == (2, 60, 120)
    assert opened.find_fault() is None


@pytest.mark.parametrize(
    "content", ["00", "ffffffffffffffff00000001", "00" * 24, "000000000000003200000001" * 3]
)
def test_a_time_index_that_makes_no_sense_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "t").write_bytes(bytes.fromhex(content))

    assert TimeIndex(tmp_path / "t", 0).open() is not None


def test_time_entries_that_go_back_are_found(tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(
        bytes.fromhex("000000000000003200000004" + "000000000000003100000014")
    )
    index = TimeIndex(tmp_path / "t", 0)
    assert index.open() is None

    assert index.find_fault() == "its entries do not increase at (49, 20)"


def test_the_index_cache_lets_the_oldest_go_but_none_with_unwritten_entries(
    tmp_path: Path,
) -> None:
    cache = IndexCache(max_entries=3)
    unwritten = offset_index(tmp_path / "a", [(1001, 1), (1002, 2)])
    written = offset_index(tmp_path / "b", [(1001, 1), (1002, 2)])
    written.flush()
    newest = offset_index(tmp_path / "c", [(1001, 1)])
    newest.flush()

    for index in (unwritten, written, newest):
        cache.admit(index)

    assert [index.is_loaded for index in (unwritten, written, newest)] == [True, False, True]
