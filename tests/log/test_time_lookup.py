"""Lookups by time whose jobs run elsewhere: whatever happens to the log meanwhile."""

import os
import random
from typing import Any

import pytest
from tests.log.conftest import drive

from headrace.config import LogConfig
from headrace.log import time_walk
from headrace.log.errors import CorruptBatchError
from headrace.log.retention import enforce_retention
from headrace.log.segment_check import examine_all
from headrace.log.steps import Steps, job, run_here
from headrace.log.time_lookup import first_at_or_after, first_of_max_timestamp
from headrace.records.record import iter_records

CONFIG = LogConfig(segment_bytes=3000, index_interval_bytes=300)


def filled(bench: Any, count: int = 60, config: LogConfig = CONFIG, **batch: Any) -> Any:
    """Batches of two records each; batch number n has the time now + n."""
    log = bench.create(config)
    for number in range(count):
        bench.append(log, bench.batch(2, timestamp=bench.now_ms + number, **batch))
    return log


def reopened(bench: Any, log: Any, config: LogConfig = CONFIG, **opening: Any) -> Any:
    log.close()
    return bench.open(config, recovery_point=log.log_end_offset, **opening)


def by_reading(log: Any, timestamp: int) -> tuple[int, int] | None:
    """The same by reading every record there is."""
    for segment in log.segments:
        data = segment.path.read_bytes()
        at = 0
        while at < len(data):
            size = int.from_bytes(data[at + 8 : at + 12], "big") + 12
            for record in iter_records(data[at : at + size]):
                if record.timestamp >= timestamp and record.offset >= log.log_start_offset:
                    return record.timestamp, record.offset
            at += size
    return None


def test_jobs_see_no_log(bench: Any) -> None:
    log = reopened(bench, filled(bench))

    for number in range(60):
        found, _ = drive(first_at_or_after(log, bench.now_ms + number))
        assert found == (bench.now_ms + number, 2 * number)
    assert drive(first_of_max_timestamp(log))[0] == (bench.now_ms + 59, 118)


def test_what_indexes_alone_can_tell_needs_no_job(bench: Any) -> None:
    log = filled(bench)

    assert drive(first_at_or_after(log, bench.now_ms + 60)) == (None, 0)


def test_all_orders_of_time_are_searched_as_by_reading(bench: Any) -> None:
    chance = random.Random(7)
    log = bench.create(CONFIG)
    times = [bench.now_ms + chance.choice((-1, 1)) * chance.randrange(50) for _ in range(80)]
    for time in times:
        bench.append(log, bench.batch(2, timestamp=time, codec=chance.randrange(5)))
    log.delete_records(33)
    log = reopened(bench, log, log_start_offset=33)

    for time in range(bench.now_ms - 51, bench.now_ms + 51):
        assert drive(first_at_or_after(log, time))[0] == by_reading(log, time)
    newest = max(times[17:] + times[16:17])
    assert drive(first_of_max_timestamp(log))[0] == by_reading(log, newest)


@pytest.mark.parametrize("jobs_before", range(4))
def test_segments_that_retention_drops_meanwhile_are_not_answered_from(
    bench: Any, jobs_before: int
) -> None:
    log = reopened(bench, filled(bench))
    second = log.segments[1].base_offset

    def drop() -> None:
        log.delete_records(second)
        enforce_retention(log, bench.now_ms)

    found, _ = drive(first_at_or_after(log, 0), *[lambda: None] * jobs_before, drop)

    assert found == (bench.now_ms + second // 2, second)


@pytest.mark.parametrize("jobs_before", range(3))
@pytest.mark.parametrize("grows_again", [False, True])
def test_a_log_that_is_cut_meanwhile_is_searched_anew(
    bench: Any, jobs_before: int, grows_again: bool
) -> None:
    log = reopened(bench, filled(bench, 20, LogConfig()), LogConfig())
    late = bench.now_ms + 1000

    def cut() -> None:
        log.truncate(10)
        if grows_again:
            bench.append(log, *[bench.batch(2, timestamp=late) for _ in range(10)])

    steps = first_at_or_after(log, bench.now_ms + 19)
    found, _ = drive(steps, *[lambda: None] * jobs_before, cut)

    assert found == ((late, 10) if grows_again else None)


@pytest.mark.parametrize("jobs_before", range(3))
def test_what_is_appended_meanwhile_does_not_disturb(bench: Any, jobs_before: int) -> None:
    log = reopened(bench, filled(bench, 20, LogConfig()), LogConfig())

    def grow() -> None:
        bench.append(log, bench.batch(2, timestamp=bench.now_ms + 1000))

    steps = first_of_max_timestamp(log)
    found, _ = drive(steps, *[lambda: None] * jobs_before, grow)

    assert found in ((bench.now_ms + 19, 38), (bench.now_ms + 1000, 40))
    assert drive(first_of_max_timestamp(log))[0] == (bench.now_ms + 1000, 40)
    assert log.segments[-1].is_max_sure


@pytest.mark.parametrize("jobs_before", range(3))
def test_what_another_examination_finds_meanwhile_counts(bench: Any, jobs_before: int) -> None:
    log = reopened(bench, filled(bench))

    def examine() -> None:
        for segment in log.segments:
            examine_all(segment)

    steps = first_at_or_after(log, bench.now_ms + 30)
    found, _ = drive(steps, *[lambda: None] * jobs_before, examine)

    assert found == (bench.now_ms + 30, 60)


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("jobs_before", range(4))
def test_an_index_is_built_anew_while_its_segment_grows(
    bench: Any, suffix: str, jobs_before: int
) -> None:
    config = LogConfig(index_interval_bytes=300)
    log = filled(bench, 40, config)
    log.close()
    good = bench.path(0, suffix).read_bytes()
    log = bench.open(config, recovery_point=80)
    segment = log.segments[0]
    # After the start, so that opening does not find it: entries that do not increase.
    entry = 8 if suffix == ".index" else 12
    bench.path(0, suffix).write_bytes(good[entry : 2 * entry] + good[entry:])
    if suffix == ".index":
        segment.index.unload()

    def grow() -> None:
        if suffix == ".timeindex" or segment.index.is_loaded:
            bench.append(log, bench.batch(2, timestamp=bench.now_ms + 5000))

    found, _ = drive(first_at_or_after(log, bench.now_ms + 7), *[lambda: None] * jobs_before, grow)

    assert found == (bench.now_ms + 7, 14)
    for number in range(40):
        wanted = bench.now_ms + number
        assert drive(first_at_or_after(log, wanted))[0] == (wanted, 2 * number)
    assert segment.trusted_from == 0
    if log.log_end_offset > 80:
        assert drive(first_of_max_timestamp(log))[0] == (bench.now_ms + 5000, 80)
    log.close()
    assert bench.path(0, suffix).read_bytes()[: len(good) - entry] == good[:-entry]


def test_damage_is_found_in_a_thread_and_walked_around(bench: Any) -> None:
    log = filled(bench, 40, LogConfig(index_interval_bytes=300))
    log.close()
    size = log.segments[0].size // 40
    bench.flip(10 * size + 80)
    log = bench.open(LogConfig(index_interval_bytes=300), recovery_point=80)

    for number in (9, 10, 11, 30):
        expected = 11 if number == 10 else number
        found, _ = drive(first_at_or_after(log, bench.now_ms + number))
        assert found == (bench.now_ms + expected, 2 * expected)
    assert [damage.start for damage in log.segments[0].damages] == [10 * size]
    with pytest.raises(CorruptBatchError):
        log.read(20, 1000)


def test_bytes_that_change_after_they_were_checked_are_an_error_not_an_answer(bench: Any) -> None:
    log = filled(bench, 10, LogConfig())
    segment = log.segments[0]
    os.pwrite(segment.file.get().fd, b"\0" * 61, 0)

    with pytest.raises(CorruptBatchError, match="there is no batch"):
        run_here(first_at_or_after(log, 0))


def test_a_wrong_base_offset_is_not_answered(bench: Any) -> None:
    log = filled(bench, 10, LogConfig())
    log.close()
    size = log.segments[0].size // 10
    data = bytearray(bench.path(0).read_bytes())
    data[2 * size + 6] = 0x01  # the base offset lies outside the checksum
    bench.path(0).write_bytes(data)
    log = bench.open(recovery_point=20)

    found, _ = drive(first_at_or_after(log, bench.now_ms + 2))

    assert found == (bench.now_ms + 3, 6)


def test_many_pieces_are_walked_one_after_the_other(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time_walk, "_SLICE_BYTES", 500)
    monkeypatch.setattr(time_walk, "_STEP_BYTES", 200)
    monkeypatch.setattr(time_walk, "_PIECE_BYTES", 150)
    config = LogConfig()
    log = bench.create(config)
    # The largest time comes first: the index leads to it and to nothing behind it.
    for time in [bench.now_ms, *range(1000, 1040), bench.now_ms + 1]:
        bench.append(log, bench.batch(2, timestamp=time, value=b"v" * 300))
    for _ in range(2):
        found, jobs = drive(first_at_or_after(log, bench.now_ms + 1))
        assert found == (bench.now_ms + 1, 82)
        assert jobs > 10
        log = reopened(bench, log, config)


def test_an_error_in_a_job_reaches_the_steps() -> None:
    def fail() -> None:
        raise OSError("no such disk")

    def steps() -> Steps[str]:
        try:
            yield from job(fail)
        except OSError as error:
            return str(error)
        return ""

    assert run_here(steps()) == "no such disk"
