import os
from pathlib import Path
from typing import Any

import pytest

from headrace.config import LogConfig
from headrace.log.errors import OffsetOutOfRangeError
from headrace.log.retention import enforce_retention
from headrace.records.batch import crc_is_valid, peek_header

SMALL_SEGMENTS = LogConfig(segment_bytes=1000, index_interval_bytes=100)


def test_batches_get_consecutive_offsets_and_come_back_as_written(bench: Any) -> None:
    log = bench.create()

    results = bench.append(log, bench.batch(3), bench.batch(2))

    assert [(r.base_offset, r.last_offset) for r in results] == [(0, 2), (3, 4)]
    assert log.log_end_offset == 5
    data = bench.read(log, 0)
    assert bench.offsets(data) == [0, 3]
    header = peek_header(data)
    assert header is not None
    assert crc_is_valid(data[: header.size])


def test_the_leader_epoch_is_stamped(bench: Any) -> None:
    log = bench.create()
    log.leader_epoch = 4

    bench.append(log, bench.batch())

    header = peek_header(bench.read(log, 0))
    assert header is not None
    assert header.leader_epoch == 4


def test_staged_batches_are_not_visible_before_commit(bench: Any) -> None:
    log = bench.create()

    bench.stage(log, bench.batch())

    assert log.has_staged
    assert log.log_end_offset == 0
    assert log.read(0, 1000) == []


def test_discarded_batches_give_their_offsets_back(bench: Any) -> None:
    log = bench.create()
    bench.stage(log, bench.batch(5))

    log.discard()

    assert bench.append(log, bench.batch())[0].base_offset == 0


def test_an_offset_inside_a_batch_returns_the_whole_batch(bench: Any) -> None:
    log = bench.create()
    bench.append(log, bench.batch(3), bench.batch(3), bench.batch(3))

    assert bench.offsets(bench.read(log, 4)) == [3, 6]


def test_the_first_batch_is_whole_even_beyond_max_bytes(bench: Any) -> None:
    log = bench.create()
    bench.append(log, bench.batch(value=b"x" * 500), bench.batch())

    assert bench.offsets(bench.read(log, 0, max_bytes=1)) == [0]


def test_a_read_is_cut_at_a_batch_boundary(bench: Any) -> None:
    log = bench.create()
    size = len(bench.batch())
    bench.append(log, *(bench.batch() for _ in range(10)))

    assert bench.offsets(bench.read(log, 2, max_bytes=3 * size + size // 2)) == [2, 3, 4]


def test_a_read_stops_before_end_offset(bench: Any) -> None:
    log = bench.create()
    bench.append(log, *(bench.batch(2) for _ in range(5)))

    (found,) = log.read(0, 10_000, end_offset=6)

    assert bench.offsets(os.pread(found.file.fd, found.length, found.position)) == [0, 2, 4]
    assert log.read(6, 10_000, end_offset=6) == []


@pytest.mark.parametrize("offset", [-1, 3])
def test_offsets_outside_the_log_are_refused(bench: Any, offset: int) -> None:
    log = bench.create()
    bench.append(log, bench.batch(2))

    with pytest.raises(OffsetOutOfRangeError):
        log.read(offset, 100)


def test_sequential_reads_see_every_batch_across_segments(bench: Any) -> None:
    log = bench.create(SMALL_SEGMENTS)
    for _ in range(50):
        bench.append(log, bench.batch(2))

    assert len(log.segments) > 3
    assert bench.read_on(log, 0, max_bytes=250) == list(range(0, 100, 2))


def test_a_reader_at_the_tail_goes_on_after_appends_and_rolls(bench: Any) -> None:
    log = bench.create(SMALL_SEGMENTS)
    seen: list[int] = []
    for number in range(40):
        bench.append(log, bench.batch())
        seen += bench.offsets(bench.read(log, number))

    assert seen == list(range(40))


def test_a_group_that_crosses_segments_is_written_once_each(bench: Any) -> None:
    log = bench.create(SMALL_SEGMENTS)

    bench.append(log, *(bench.batch(value=b"y" * 300) for _ in range(10)))

    assert len(log.segments) == 5
    assert bench.read_on(log, 0) == list(range(10))
    assert all(segment.size <= 1000 for segment in log.segments)


def test_log_append_time_replaces_the_timestamp_and_seals_the_batch(bench: Any) -> None:
    log = bench.create(LogConfig(is_log_append_time=True))

    (result,) = bench.append(log, bench.batch(timestamp=5))

    data = bench.read(log, 0)
    header = peek_header(data)
    assert header is not None
    assert result.log_append_time == header.max_timestamp == bench.now_ms
    assert header.is_log_append_time
    assert crc_is_valid(data)


def test_create_time_reports_no_append_time(bench: Any) -> None:
    log = bench.create()

    assert bench.append(log, bench.batch())[0].log_append_time == -1


def test_a_segment_rolls_by_age_of_its_first_batch(bench: Any) -> None:
    log = bench.create(LogConfig(segment_ms=1000))
    for age in (0, 1000, 1001, 1500, 2002):
        bench.append(log, bench.batch(timestamp=bench.now_ms + age))

    assert [segment.base_offset for segment in log.segments] == [0, 2, 4]


def test_a_segment_without_timestamps_rolls_by_the_time_it_was_created(bench: Any) -> None:
    log = bench.create(LogConfig(segment_ms=1000))
    bench.append(log, bench.batch(timestamp=-1))
    for later in (1000, 1001):
        bench.stage(log, bench.batch(timestamp=-1))
        log.commit(bench.now_ms + later)

    assert [segment.base_offset for segment in log.segments] == [0, 2]


def test_a_segment_rolls_when_its_offsets_no_longer_fit(bench: Any) -> None:
    log = bench.create()
    bench.append(log, bench.batch())
    log.log_end_offset = log._next_offset = 2**31

    bench.append(log, bench.batch())

    assert [segment.base_offset for segment in log.segments] == [0, 2**31]


def test_a_new_config_counts_from_the_next_commit_on(bench: Any) -> None:
    log = bench.create()
    bench.append(log, bench.batch())

    log.config = LogConfig(segment_bytes=10)
    bench.append(log, bench.batch())

    assert len(log.segments) == 2


def test_each_roll_and_the_clean_stop_write_a_snapshot(bench: Any) -> None:
    log = bench.create(SMALL_SEGMENTS)
    for _ in range(12):
        bench.append(log, bench.batch(value=b"z" * 200))
    bases = [segment.base_offset for segment in log.segments]
    log.close()

    snapshots = {path.name for path in bench.directory.glob("*.snapshot")}
    assert snapshots == {f"{offset:020d}.snapshot" for offset in [*bases[1:], 12]}
    assert {path.stat().st_size for path in bench.directory.glob("*.snapshot")} == {10}


def test_a_snapshot_at_a_roll_knows_only_batches_before_it(bench: Any) -> None:
    log = bench.create(LogConfig(segment_bytes=250))
    bench.append(
        log,
        *(
            bench.batch(producer_id=9, producer_epoch=0, base_sequence=number)
            for number in range(6)
        ),
    )
    second = log.segments[1].base_offset

    # Losing what follows, the state must be that of the snapshot.
    log.truncate(second)

    assert log.producers.entries[9].last_sequence == second - 1


def test_a_slice_outlives_the_deletion_of_its_segment(bench: Any) -> None:
    log = bench.create(SMALL_SEGMENTS)
    for _ in range(20):
        bench.append(log, bench.batch())
    (found,) = log.read(0, 100)
    log.delete_records(-1)
    enforce_retention(log, bench.now_ms + 1)
    enforce_retention(log, bench.now_ms + 10**9)

    assert not bench.path(0).exists()
    assert bench.offsets(os.pread(found.file.fd, found.length, found.position)) == [0]


def test_offsets_are_found_by_time(bench: Any) -> None:
    log = bench.create(SMALL_SEGMENTS)
    for number in range(60):
        bench.append(log, bench.batch(2, timestamp=1000 + 10 * number))

    assert bench.offset_for_time(log, 0) == (1000, 0)
    assert bench.offset_for_time(log, 1005) == (1010, 2)
    assert bench.offset_for_time(log, 1590) == (1590, 118)
    assert bench.offset_for_time(log, 1591) is None
    assert bench.offset_of_max_timestamp(log) == (1590, 118)


def test_time_lookups_do_not_see_below_the_log_start(bench: Any) -> None:
    log = bench.create()
    bench.append(log, bench.batch(timestamp=900), bench.batch(timestamp=100))
    bench.append(log, bench.batch(timestamp=300), bench.batch(timestamp=200))

    log.delete_records(1)

    assert bench.offset_for_time(log, 50) == (100, 1)
    assert bench.offset_of_max_timestamp(log) == (300, 2)


def test_a_log_without_timestamps_has_no_maximum(bench: Any) -> None:
    log = bench.create()
    assert bench.offset_of_max_timestamp(log) is None

    bench.append(log, bench.batch(timestamp=-1))

    assert bench.offset_of_max_timestamp(log) is None


def test_the_end_of_an_epoch_is_known(bench: Any) -> None:
    log = bench.create()
    bench.append(log, bench.batch(3))

    assert log.end_offset_for_epoch(0) == (0, 3)
    assert log.end_offset_for_epoch(1) == (-1, -1)


def test_truncation_removes_the_batch_that_holds_the_offset(bench: Any) -> None:
    log = bench.create(SMALL_SEGMENTS)
    for _ in range(30):
        bench.append(log, bench.batch(2))

    log.truncate(21)

    assert log.log_end_offset == 20
    assert bench.read_on(log, 0) == list(range(0, 20, 2))
    assert bench.append(log, bench.batch())[0].base_offset == 20


def test_files_open_again_when_the_cache_is_small(bench: Any, tmp_path: Path) -> None:
    bench.files.limit = 2
    log = bench.create(SMALL_SEGMENTS)
    for _ in range(60):
        bench.append(log, bench.batch())

    assert bench.read_on(log, 0) == list(range(60))
    assert sum(segment.file.file is not None for segment in log.segments) <= 2


def test_a_reader_does_not_go_on_at_a_place_from_before_a_truncation(bench: Any) -> None:
    log = bench.create()
    bench.append(log, bench.batch(), bench.batch(value=b"long" * 50), bench.batch())
    size = len(bench.batch())
    log.read(0, size + 300)  # remembers where offset 2 began
    log.truncate(1)
    bench.append(log, bench.batch(value=b"longer" * 60), bench.batch())

    assert bench.offsets(bench.read(log, 2)) == [2]
