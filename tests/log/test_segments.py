import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from headrace.config import LogConfig
from headrace.log.segments import Segments

SMALL = LogConfig(segment_bytes=1000, index_interval_bytes=100)


def filled(bench: Any, count: int = 20) -> Any:
    """A log of several segments."""
    log = bench.create(SMALL)
    for _ in range(count):
        bench.append(log, bench.batch(value=b"v" * 200))
    assert len(log.segments) > 4
    return log


def check(segments: Segments) -> None:
    """What is always true of a log's segments."""
    assert segments
    assert [one for one in segments if one.is_active] == [segments.active] == [segments[-1]]
    for segment, successor in pairwise(segments):
        assert segment.base_offset < segment.end_offset == successor.base_offset
    assert all(one.path.exists() for one in segments)


def test_each_roll_closes_the_active_segment_where_the_next_begins(bench: Any) -> None:
    segments = filled(bench).segments
    check(segments)

    closed = segments.roll(20, SMALL, bench.now_ms)

    check(segments)
    assert closed is segments[-2]
    assert (closed.end_offset, segments.active.base_offset, segments.active.size) == (20, 20, 0)


def test_a_roll_that_cannot_create_its_files_changes_nothing(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    segments = filled(bench).segments
    before = list(segments)

    def refuse(path: Path, flags: int, mode: int = 0o777) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse)
        with pytest.raises(OSError, match="No space"):
            segments.roll(20, SMALL, bench.now_ms)

    assert list(segments) == before
    check(segments)


def test_reset_takes_rolls_and_appends_back(bench: Any) -> None:
    log = bench.create(SMALL)
    bench.append(log, bench.batch())
    segments = log.segments
    mark = segments.mark()
    size = segments.size_bytes
    bench.append(log, bench.batch())
    for offset in (2, 3):
        segments.roll(offset, SMALL, bench.now_ms)

    assert segments.reset(mark) == [2, 3]

    check(segments)
    assert (len(segments), segments.size_bytes, segments.active.end_offset) == (1, size, 1)
    assert bench.path(0).stat().st_size == size
    assert sorted(path.name for path in bench.directory.glob("*.log")) == [bench.path(0).name]


def test_a_dropped_segments_files_wait_until_they_are_due(bench: Any) -> None:
    segments = filled(bench).segments
    first, second = segments[:2]

    assert segments.drop_first(due_ms=500) == first.base_offset

    check(segments)
    assert first not in segments
    assert segments[0] is second
    assert segments.take_due_files(499) == []
    due = segments.take_due_files(500)
    assert {path.name for path in due} == {
        f"{bench.path(0, suffix).name}.deleted" for suffix in (".log", ".index", ".timeindex")
    }
    assert segments.take_due_files(10**9) == []


@pytest.mark.parametrize(("refused", "is_gone"), [(".log", False), (".index", True)])
def test_a_segment_whose_log_was_renamed_is_gone_whatever_failed_later(
    bench: Any, monkeypatch: pytest.MonkeyPatch, refused: str, is_gone: bool
) -> None:
    segments = filled(bench).segments
    first = segments[0]
    rename = Path.rename

    def refuse(path: Path, target: Path) -> Path:
        if path.suffix == refused:
            raise OSError(5, "Input/output error")
        return rename(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", refuse)
        with pytest.raises(OSError, match="Input/output"):
            segments.drop_first(due_ms=0)

    assert (first not in segments) == is_gone
    check(segments)


@pytest.mark.parametrize("offset", [0, 1, 3, 4, 10, 19])
def test_what_is_left_of_a_cut_ends_with_an_active_segment(bench: Any, offset: int) -> None:
    segments = filled(bench).segments

    assert segments.truncate(offset, SMALL) == offset

    check(segments)
    assert segments.active.end_offset == offset
    assert len(list(bench.directory.glob("*.log"))) == len(segments)


def test_a_cut_below_all_of_them_leaves_one_empty_segment(bench: Any) -> None:
    log = bench.create(SMALL, log_start_offset=10)
    bench.append(log, bench.batch())

    assert log.segments.truncate(5, SMALL) == 5

    check(log.segments)
    assert [(one.base_offset, one.size) for one in log.segments] == [(5, 0)]


def test_an_offset_is_found_in_the_segment_that_holds_it(bench: Any) -> None:
    segments = filled(bench).segments

    for offset in range(20):
        segment, position = segments.find(offset) or (None, 0)
        assert segment is not None
        assert segment.base_offset <= offset < segment.end_offset
        data = segment.path.read_bytes()[position:]
        assert int.from_bytes(data[:8], "big") == offset
    assert segments.find(20) is None
