from typing import Any

import pytest

from headrace.config import LogConfig
from headrace.log.errors import CorruptBatchError

SMALL_SEGMENTS = LogConfig(segment_bytes=1000, index_interval_bytes=100)


def filled(bench: Any, count: int, config: LogConfig | None = None) -> Any:
    log = bench.create(config)
    for _ in range(count):
        bench.append(log, bench.batch())
    return log


def size_of_one(bench: Any) -> int:
    return len(bench.batch())


@pytest.mark.parametrize("kept", [1, 11, 12, 60, 61, 80])
def test_a_torn_tail_is_cut_on_open(bench: Any, kept: int) -> None:
    filled(bench, 3)
    whole = bench.path(0).read_bytes()
    bench.path(0).write_bytes(whole + whole[:kept])

    log = bench.crash_open(recovery_point=3)

    assert log.log_end_offset == 3
    assert bench.path(0).read_bytes() == whole
    assert f"cut {kept} bytes at byte {len(whole)}" in bench.repairs[0]
    assert bench.append(log, bench.batch())[0].base_offset == 3


@pytest.mark.parametrize("zeros", [1, 70, 5000, 3_000_000])
def test_a_zero_filled_tail_is_cut(bench: Any, zeros: int) -> None:
    filled(bench, 3)
    whole = bench.path(0).read_bytes()
    bench.path(0).write_bytes(whole + bytes(zeros))

    log = bench.crash_open()

    assert (log.log_end_offset, bench.path(0).stat().st_size) == (3, len(whole))


def test_a_last_batch_with_a_bad_checksum_beyond_the_recovery_point_is_cut(bench: Any) -> None:
    filled(bench, 3)
    bench.flip(2 * size_of_one(bench) + 70)

    log = bench.crash_open(recovery_point=2)

    assert log.log_end_offset == 2
    assert bench.read_on(log, 0) == [0, 1]


def test_a_bad_tail_below_the_recovery_point_is_kept_as_damage(bench: Any) -> None:
    filled(bench, 3)
    at = 2 * size_of_one(bench)
    bench.flip(at + 70)
    before = bench.path(0).read_bytes()

    log = bench.crash_open(recovery_point=3)

    assert bench.path(0).read_bytes() == before
    assert log.log_end_offset == 3
    with pytest.raises(CorruptBatchError) as caught:
        log.read(2, 1000)
    assert (caught.value.path, caught.value.position) == (bench.path(0), at)
    assert bench.append(log, bench.batch())[0].base_offset == 3
    assert bench.read_on(log, 3) == [3]


def test_offsets_below_the_recovery_point_are_never_given_twice(bench: Any) -> None:
    filled(bench, 3)
    whole = bench.path(0).read_bytes()
    bench.path(0).write_bytes(whole[: size_of_one(bench)])

    log = bench.crash_open(recovery_point=3)

    assert log.log_end_offset == 3
    assert bench.offsets(bench.read(log, 0)) == [0]
    with pytest.raises(CorruptBatchError, match="the file ends before offset 3"):
        log.read(1, 1000)
    bench.append(log, bench.batch())
    with pytest.raises(CorruptBatchError):
        log.read(2, 1000)
    assert bench.read_on(log, 3) == [3]


@pytest.mark.parametrize("at", [0, 3, 9, 16, 18, 30, 70])
@pytest.mark.parametrize("is_clean", [True, False])
def test_damage_in_the_middle_is_named_and_all_behind_it_served(
    bench: Any, at: int, is_clean: bool
) -> None:
    log = filled(bench, 9)
    if is_clean:
        log.close()
    position = 4 * size_of_one(bench)
    bench.flip(position + at)
    before = bench.path(0).read_bytes()

    log = bench.open(recovery_point=9) if is_clean else bench.crash_open(recovery_point=0)

    assert bench.path(0).read_bytes() == before
    assert bench.offsets(bench.read(log, 0)) == [0, 1, 2, 3]
    with pytest.raises(CorruptBatchError) as caught:
        log.read(4, 1000)
    assert (caught.value.path, caught.value.position) == (bench.path(0), position)
    assert bench.read_on(log, 5) == [5, 6, 7, 8]
    assert bench.append(log, bench.batch())[0].base_offset == 9
    if not is_clean:
        assert f"damaged at byte {position}" in bench.repairs[0]


def test_damage_at_the_very_start_does_not_hide_the_rest(bench: Any) -> None:
    filled(bench, 5).close()
    bench.flip(70)

    log = bench.open(recovery_point=5)

    with pytest.raises(CorruptBatchError):
        log.read(0, 1000)
    assert bench.read_on(log, 1) == [1, 2, 3, 4]


def test_damage_in_a_closed_segment_is_found_on_first_read(bench: Any) -> None:
    log = filled(bench, 40, SMALL_SEGMENTS)
    second = log.segments[1].base_offset
    log.close()
    bench.flip(2 * size_of_one(bench) + 70, second)

    log = bench.open(SMALL_SEGMENTS, recovery_point=40)

    assert bench.offsets(bench.read(log, second)) == [second, second + 1]
    with pytest.raises(CorruptBatchError):
        log.read(second + 2, 1000)
    assert bench.read_on(log, second + 3) == list(range(second + 3, 40))
    assert bench.offsets(bench.read(log, 0)) == list(range(second))


def test_an_offset_inside_a_damaged_batch_of_many_is_refused(bench: Any) -> None:
    log = bench.create()
    sizes = [len(bench.batch(10)) for _ in range(3)]
    for _ in sizes:
        bench.append(log, bench.batch(10))
    log.close()
    bench.flip(sizes[0] + 70)

    log = bench.open(recovery_point=30)

    for offset in (10, 15, 19):
        with pytest.raises(CorruptBatchError):
            log.read(offset, 1000)
    assert bench.offsets(bench.read(log, 9)) == [0]
    assert bench.offsets(bench.read(log, 20)) == [20]


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("is_clean", [True, False])
@pytest.mark.parametrize("content", [None, b"", b"\xff" * 7, b"\x00" * 240, b"\x7f" * 240])
def test_bad_index_files_are_rebuilt(
    bench: Any, suffix: str, is_clean: bool, content: bytes | None
) -> None:
    log = bench.create(SMALL_SEGMENTS)
    for number in range(40):
        bench.append(log, bench.batch(timestamp=bench.now_ms + number))
    log.close()
    bases = [segment.base_offset for segment in log.segments]
    wanted = {base: bench.path(base, suffix).read_bytes() for base in bases}
    for base in bases:
        if content is None:
            bench.path(base, suffix).unlink()
        else:
            bench.path(base, suffix).write_bytes(content)

    log = bench.open(SMALL_SEGMENTS, was_clean=is_clean, recovery_point=40)

    assert bench.read_on(log, 0, 300) == list(range(40))
    if content != b"":  # an empty index is a correct one, only slow
        found = [bench.offset_for_time(log, bench.now_ms + number) for number in range(40)]
        assert found == [(bench.now_ms + number, number) for number in range(40)]
        log.close()
        assert {base: bench.path(base, suffix).read_bytes() for base in bases} == wanted


def test_an_index_of_another_log_does_not_hide_messages(bench: Any) -> None:
    log = filled(bench, 40, LogConfig(index_interval_bytes=100))
    log.close()
    index = bytearray(bench.path(0, ".index").read_bytes())
    # Entries that increase and stay inside the file, but lead between batches.
    for entry in range(0, len(index), 8):
        position = int.from_bytes(index[entry + 4 : entry + 8], "big") - 13
        index[entry + 4 : entry + 8] = position.to_bytes(4, "big")
    bench.path(0, ".index").write_bytes(index)

    log = bench.open(LogConfig(index_interval_bytes=100), recovery_point=40)

    for offset in range(40):
        assert bench.offsets(bench.read(log, offset, 1)) == [offset]


def test_producer_state_is_rebuilt_after_a_crash(bench: Any) -> None:
    log = bench.create(SMALL_SEGMENTS)
    for number in range(20):
        bench.append(log, bench.batch(producer_id=3, producer_epoch=1, base_sequence=number))

    log = bench.crash_open(SMALL_SEGMENTS, recovery_point=10)

    assert log.producers.entries[3].last_sequence == 19
    assert [batch.last_offset for batch in log.producers.entries[3].batches] == list(range(15, 20))


def test_an_empty_new_segment_behind_a_torn_one_is_removed(bench: Any) -> None:
    log = filled(bench, 40, SMALL_SEGMENTS)
    last = log.segments[-1].base_offset
    bench.path(last).write_bytes(b"")
    before = log.segments[-2]
    bench.path(before.base_offset).write_bytes(
        bench.path(before.base_offset).read_bytes()[: 2 * size_of_one(bench) + 5]
    )

    log = bench.crash_open(SMALL_SEGMENTS, recovery_point=before.base_offset)

    assert log.log_end_offset == before.base_offset + 2
    assert not bench.path(last).exists()
    assert bench.read_on(log, 0) == list(range(before.base_offset + 2))
    assert bench.append(log, bench.batch())[0].base_offset == before.base_offset + 2


def test_a_torn_closed_segment_keeps_what_follows_it(bench: Any) -> None:
    log = filled(bench, 40, SMALL_SEGMENTS)
    second, third = (segment.base_offset for segment in log.segments[1:3])
    data = bench.path(second).read_bytes()
    bench.path(second).write_bytes(data[:-5])

    log = bench.crash_open(SMALL_SEGMENTS)

    assert log.log_end_offset == 40
    with pytest.raises(CorruptBatchError):
        log.read(third - 1, 1000)
    assert bench.read_on(log, third) == list(range(third, 40))


def test_leftovers_of_deletion_and_compaction_are_cleared(bench: Any) -> None:
    log = filled(bench, 40, SMALL_SEGMENTS)
    log.close()
    second, third = (segment.base_offset for segment in log.segments[1:3])
    deleted = bench.path(0).with_suffix(".log.deleted")
    cleaned = bench.path(third).with_suffix(".log.cleaned")
    swap = bench.path(second).with_suffix(".log.swap")
    deleted.write_bytes(b"old")
    cleaned.write_bytes(b"half")
    swap.write_bytes(bench.path(second).read_bytes())
    bench.path(second).write_bytes(b"replaced")

    log = bench.open(SMALL_SEGMENTS, recovery_point=40)

    assert not any(path.exists() for path in (deleted, cleaned, swap))
    assert bench.read_on(log, 0) == list(range(40))


def test_a_swap_file_of_an_unfinished_set_is_dropped(bench: Any) -> None:
    log = filled(bench, 40, SMALL_SEGMENTS)
    log.close()
    second = log.segments[1].base_offset
    bench.path(0).with_suffix(".log.cleaned").write_bytes(b"half")
    bench.path(second).with_suffix(".log.swap").write_bytes(b"not to be used")

    log = bench.open(SMALL_SEGMENTS, recovery_point=40)

    assert bench.read_on(log, 0) == list(range(40))


def test_a_crash_before_any_index_was_written_loses_nothing(bench: Any) -> None:
    log = bench.create(LogConfig(index_interval_bytes=100))
    for _ in range(30):
        bench.append(log, bench.batch())
    assert bench.path(0, ".index").stat().st_size == 0
    expected = log.segments[0].index.positions.tolist()

    log = bench.crash_open(LogConfig(index_interval_bytes=100))

    assert log.segments[0].index.positions.tolist() == expected
    assert bench.read_on(log, 0) == list(range(30))


def test_recovery_makes_everything_durable(bench: Any) -> None:
    filled(bench, 5)

    log = bench.crash_open()

    assert log.recovery_point == 5
    assert log.unsynced()[0] == []


def test_an_emptied_directory_goes_on_where_it_was(bench: Any) -> None:
    filled(bench, 5)
    for path in bench.directory.iterdir():
        path.unlink()

    log = bench.crash_open(recovery_point=5)

    assert bench.append(log, bench.batch())[0].base_offset == 5


def test_a_damaged_epoch_file_is_ignored(bench: Any) -> None:
    filled(bench, 3).close()
    (bench.directory / "leader-epoch-checkpoint").write_text("0\n1\nnonsense\n")

    log = bench.open(recovery_point=3)

    assert "leader-epoch-checkpoint: ignored" in bench.repairs[0]
    assert log.end_offset_for_epoch(0) == (0, 3)
