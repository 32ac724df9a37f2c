import os
from typing import Any

import pytest
from tests.log.conftest import drive

from headrace.config import LogConfig
from headrace.log.errors import OffsetOutOfRangeError
from headrace.log.retention import enforce_retention, prepare_retention

SMALL = {"segment_bytes": 1000, "index_interval_bytes": 100}


def filled(bench: Any, config: LogConfig, count: int = 40, step_ms: int = 10) -> Any:
    log = bench.create(config)
    for number in range(count):
        bench.append(log, bench.batch(timestamp=bench.now_ms + number * step_ms))
    return log


def reopened(bench: Any, config: LogConfig, log: Any) -> Any:
    log.close()
    return bench.open(config, recovery_point=log.log_end_offset)


def test_segments_whose_newest_message_is_too_old_go(bench: Any) -> None:
    log = filled(bench, LogConfig(**SMALL, retention_ms=1000))
    second, third = log.segments[1:3]

    enforce_retention(log, third.max_timestamp + 1000)

    assert second.base_offset < log.log_start_offset == third.base_offset
    with pytest.raises(OffsetOutOfRangeError):
        log.read(third.base_offset - 1, 100)
    assert bench.read_on(log, third.base_offset) == list(range(third.base_offset, 40))


def test_an_active_segment_that_expired_is_rolled_and_goes(bench: Any) -> None:
    log = filled(bench, LogConfig(**SMALL, retention_ms=1000))

    deleted = enforce_retention(log, bench.now_ms + 10_000)

    assert deleted > 1
    assert (log.log_start_offset, log.log_end_offset, log.size_bytes) == (40, 40, 0)
    assert bench.append(log, bench.batch())[0].base_offset == 40
    assert enforce_retention(log, bench.now_ms + 500) == 0


def test_an_empty_active_segment_stays(bench: Any) -> None:
    log = bench.create(LogConfig(retention_ms=1, retention_bytes=0))

    assert enforce_retention(log, bench.now_ms + 10**9) == 0


def test_without_timestamps_the_age_of_the_file_counts(bench: Any) -> None:
    log = bench.create(LogConfig(**SMALL, retention_ms=1000))
    for _ in range(20):
        bench.append(log, bench.batch(timestamp=-1))
    first = log.segments[0]
    os.utime(first.path, ns=(0, 5_000_000_000))
    for segment in log.segments[1:]:
        os.utime(segment.path, ns=(0, 9_000_000_000))

    assert enforce_retention(log, 6001) == 1
    assert log.log_start_offset == log.segments[0].base_offset > 0


def test_the_oldest_segments_go_while_the_log_stays_over_its_size(bench: Any) -> None:
    log = filled(bench, LogConfig(**SMALL, retention_ms=None, retention_bytes=2500))
    size = log.size_bytes
    smallest = min(segment.size for segment in log.segments)

    enforce_retention(log, bench.now_ms)

    assert 2500 <= log.size_bytes < size
    assert log.size_bytes - log.segments[0].size < 2500 + smallest
    assert bench.read_on(log, log.log_start_offset)[-1] == 39


def test_a_log_that_is_only_compacted_keeps_its_age_and_size(bench: Any) -> None:
    config = LogConfig(
        **SMALL, retention_ms=1, retention_bytes=1, is_deleting=False, is_compacted=True
    )
    log = filled(bench, config)

    assert enforce_retention(log, bench.now_ms + 10**9) == 0


def test_deleted_records_are_hidden_at_once_and_their_segments_go_later(bench: Any) -> None:
    log = filled(bench, LogConfig(**SMALL, retention_ms=None))
    target = log.segments[2].base_offset + 1

    assert log.delete_records(target) == target
    with pytest.raises(OffsetOutOfRangeError):
        log.read(target - 1, 100)
    assert log.delete_records(1) == target
    assert enforce_retention(log, bench.now_ms) == 2
    assert (log.log_start_offset, log.segments[0].base_offset) == (target, target - 1)
    assert (bench.directory / "leader-epoch-checkpoint").read_text() == f"0\n1\n0 {target}\n"


@pytest.mark.parametrize("offset", [-2, 41])
def test_records_outside_the_log_cannot_be_deleted(bench: Any, offset: int) -> None:
    log = filled(bench, LogConfig())

    with pytest.raises(OffsetOutOfRangeError):
        log.delete_records(offset)
    assert log.delete_records(-1) == 40


def test_files_wait_under_another_name_before_they_are_removed(bench: Any) -> None:
    config = LogConfig(**SMALL, retention_ms=None, file_delete_delay_ms=500)
    log = filled(bench, config)
    log.delete_records(-1)

    enforce_retention(log, bench.now_ms)
    waiting = list(bench.directory.glob("*.deleted"))
    assert bench.path(0).with_suffix(".log.deleted") in waiting
    enforce_retention(log, bench.now_ms + 499)
    assert list(bench.directory.glob("*.deleted")) == waiting
    enforce_retention(log, bench.now_ms + 500)

    assert not list(bench.directory.glob("*.deleted"))
    assert not bench.path(0).exists()


def test_a_segment_takes_its_snapshot_and_abort_list_along(bench: Any) -> None:
    log = filled(bench, LogConfig(**SMALL, retention_ms=None))
    second, third = (segment.base_offset for segment in log.segments[1:3])
    bench.path(second, ".txnindex").write_bytes(b"\x00" * 34)
    log.delete_records(third)

    enforce_retention(log, bench.now_ms)

    assert not bench.path(second, ".snapshot").exists()
    assert not bench.path(second, ".txnindex").exists()
    assert bench.path(third, ".snapshot").exists()


def test_the_log_start_survives_only_through_its_checkpoint(bench: Any) -> None:
    log = filled(bench, LogConfig(**SMALL, retention_ms=None))
    log.delete_records(25)
    log.close()

    assert bench.open(LogConfig(**SMALL), log_start_offset=25).log_start_offset == 25


@pytest.mark.parametrize("left", [0, 12, 24])
def test_a_time_index_that_lost_its_end_does_not_make_a_segment_old(bench: Any, left: int) -> None:
    config = LogConfig(**SMALL, retention_ms=1000)
    log = filled(bench, config, step_ms=1000)
    log.close()
    newest = [segment.max_timestamp for segment in log.segments]
    bases = [segment.base_offset for segment in log.segments]
    for base in bases[:-1]:
        os.truncate(bench.path(base, ".timeindex"), left)

    log = bench.open(config, recovery_point=40)
    enforce_retention(log, newest[1] + 1000)

    assert log.log_start_offset == bases[1]
    assert bench.offset_for_time(log, newest[1]) == (newest[1], bases[2] - 1)


def test_retention_is_prepared_beside_the_loop(bench: Any) -> None:
    config = LogConfig(segment_bytes=3000, index_interval_bytes=300, retention_ms=1000)
    log = reopened(bench, config, filled(bench, config, 60, step_ms=1))
    assert not any(segment.is_max_sure for segment in log.segments)

    _, jobs = drive(prepare_retention(log, bench.now_ms + 1_000_000))

    assert jobs
    assert all(segment.is_max_sure for segment in log.segments)
    assert enforce_retention(log, bench.now_ms + 1_000_000)


def test_what_retention_keeps_is_not_looked_into(bench: Any) -> None:
    config = LogConfig(segment_bytes=3000, retention_ms=1000)
    log = reopened(bench, config, filled(bench, config, 60, step_ms=1))

    assert drive(prepare_retention(log, bench.now_ms)) == (None, 0)
