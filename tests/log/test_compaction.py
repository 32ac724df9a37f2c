"""Compaction of one log: what stays, what goes, and that nobody notices otherwise."""

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from tests.log.compacting import (
    COMPACTED,
    batches,
    compact,
    headers,
    records,
    roll,
    table,
    write,
)
from tests.log.conftest import KAFKA_DATA, NOW_MS, TOPIC_ID, Bench

from headrace.kafka.tools import dump_log_segments
from headrace.log.compaction import CleaningStoppedError, is_worth_it, plan
from headrace.log.directory import LogDirectory
from headrace.log.errors import CorruptBatchError, StorageWriteError
from headrace.log.retention import enforce_retention
from headrace.log.verify import verify_directory
from headrace.records.codecs import Codec


def kept(bench: Bench, log: object) -> list[tuple[int, bytes | None, bytes | None]]:
    return [(r.offset, r.key, r.value) for r in records(bench, log)]  # type: ignore[arg-type]


@pytest.mark.parametrize("codec", list(Codec))
def test_of_each_key_the_last_record_stays_at_its_offset(bench: Bench, codec: Codec) -> None:
    log = bench.create(COMPACTED)
    write(bench, log, (b"a", b"1"), (b"b", b"1"), (b"c", b"1"), codec=codec)
    write(bench, log, (b"a", b"2"), (b"d", b"1"), codec=codec)
    write(bench, log, (b"a", b"3"), codec=codec)
    roll(log)
    write(bench, log, (b"b", b"2"))

    assert compact(log)

    # The active segment is not looked at, so "b" is there twice.
    assert kept(bench, log) == [
        (1, b"b", b"1"),
        (2, b"c", b"1"),
        (4, b"d", b"1"),
        (5, b"a", b"3"),
        (6, b"b", b"2"),
    ]
    assert [(h.base_offset, h.last_offset, h.codec) for h in headers(bench, log)[:2]] == [
        (0, 2, codec),
        (3, 4, codec),
    ]


def test_timestamps_headers_and_untouched_batches_survive(bench: Bench) -> None:
    log = bench.create(COMPACTED)
    write(bench, log, (b"a", b"1"), (b"b", b"1"), timestamp=NOW_MS + 50)
    write(bench, log, (b"c", b"1"), (b"d", b"1"), timestamp=NOW_MS + 10)
    write(bench, log, (b"b", b"2"))
    roll(log)
    before = {record.offset: record for record in records(bench, log)}
    untouched = batches(bench, log)[1]

    compact(log)

    assert untouched in batches(bench, log)
    assert all(before[record.offset] == record for record in records(bench, log))
    assert headers(bench, log)[0].max_timestamp == NOW_MS + 50


def test_records_without_a_key_go(bench: Bench) -> None:
    log = bench.create(COMPACTED)
    write(bench, log, (None, b"x"), (b"a", b"1"))
    write(bench, log, (None, b"y"))
    write(bench, log, (b"b", b"1"))
    roll(log)

    compact(log)

    assert kept(bench, log) == [(1, b"a", b"1"), (3, b"b", b"1")]


def test_a_tombstone_stays_for_its_time_and_its_key_never_comes_back(bench: Bench) -> None:
    log = bench.create(COMPACTED)
    write(bench, log, (b"a", b"1"), (b"b", b"1"))
    write(bench, log, (b"a", None), (b"c", b"1"), timestamp=NOW_MS + 5)
    roll(log)
    before = {record.offset: record for record in records(bench, log)}

    compact(log, NOW_MS)

    assert kept(bench, log) == [(1, b"b", b"1"), (2, b"a", None), (3, b"c", b"1")]
    assert all(before[record.offset] == record for record in records(bench, log))
    horizon = headers(bench, log)[1]
    assert horizon.has_delete_horizon
    assert horizon.base_timestamp == NOW_MS + COMPACTED.delete_retention_ms

    for now_ms in (NOW_MS + 999, NOW_MS + 1000):
        write(bench, log, (b"z", b"1"))
        roll(log)
        compact(log, now_ms)
        has_tombstone = (2, b"a", None) in kept(bench, log)
        assert has_tombstone == (now_ms < NOW_MS + 1000)
        assert table(records(bench, log)) == {b"b": b"1", b"c": b"1", b"z": b"1"}


def test_nothing_to_do_is_said(bench: Bench) -> None:
    log = bench.create(COMPACTED)
    write(bench, log, (b"a", b"1"))
    assert plan(log, NOW_MS) is None  # only an active segment

    roll(log)
    assert compact(log)
    assert plan(log, NOW_MS) is None  # all of it was looked at before


def test_a_log_is_worth_it_from_its_dirty_ratio_on(bench: Bench) -> None:
    log = bench.create(replace(COMPACTED, min_cleanable_dirty_ratio=0.5))
    for index in range(4):
        write(bench, log, (b"%d" % index, b"v"))
    roll(log)
    assert is_worth_it(log)
    compact(log)
    assert not is_worth_it(log)

    for index in range(3):
        write(bench, log, (b"%d" % index, b"w"))
        assert not is_worth_it(log, roll_bytes=1)
    write(bench, log, (b"3", b"w"))
    assert not is_worth_it(log)  # it is all in the active segment
    assert is_worth_it(log, roll_bytes=1)
    assert not is_worth_it(log, roll_bytes=10_000)
    roll(log)
    assert is_worth_it(log)


def test_a_large_active_segment_is_rolled_for_it(bench: Bench) -> None:
    log = bench.create(COMPACTED)
    for _ in range(5):
        write(bench, log, (b"a", b"v" * 100))

    cleaning = plan(log, NOW_MS, roll_bytes=500)

    assert cleaning is not None
    cleaning.copy()
    cleaning.announce()
    assert cleaning.swap()
    assert kept(bench, log) == [(4, b"a", b"v" * 100)]
    assert cleaning.bytes_after < cleaning.bytes_before / 4
    assert write(bench, log, (b"a", b"w")) == 5


def test_neighbours_are_joined_as_far_as_a_segment_holds_them(bench: Bench) -> None:
    log = bench.create(replace(COMPACTED, segment_bytes=1000))
    for index in range(20):
        write(bench, log, (b"%d" % index, b"v" * 150))
    for index in range(20):
        write(bench, log, (b"%d" % index, b"w" * 10))
    roll(log)
    before = len(log.segments)
    assert before > 6

    compact(log)
    write(bench, log, (b"x", b"x"))
    roll(log)
    compact(log)

    assert len(log.segments) < before - 2
    assert all(segment.size <= 1000 for segment in log.segments)
    assert table(records(bench, log)) == {b"%d" % i: b"w" * 10 for i in range(20)} | {b"x": b"x"}


def test_reading_works_from_every_offset_across_the_gaps(bench: Bench) -> None:
    log = bench.create(replace(COMPACTED, segment_bytes=600))
    for index in range(60):
        write(bench, log, (b"%d" % (index % 7), b"%d" % index), (b"%d" % (index % 3), b"x"))
    compact(log)
    expected = records(bench, log)

    for offset in range(log.log_end_offset):
        found = records(bench, log, offset)
        assert [r for r in found if r.offset >= offset] == [
            r for r in expected if r.offset >= offset
        ]


def test_times_are_found_across_the_gaps(bench: Bench) -> None:
    log = bench.create(replace(COMPACTED, segment_bytes=600))
    for index in range(60):
        write(bench, log, (b"%d" % (index % 7), b"%d" % index), timestamp=NOW_MS + index)
    compact(log)
    found = records(bench, log)

    for index in range(60):
        first = next((r for r in found if r.timestamp >= NOW_MS + index), None)
        expected = None if first is None else (first.timestamp, first.offset)
        assert bench.offset_for_time(log, NOW_MS + index) == expected
    assert bench.offset_of_max_timestamp(log) == (NOW_MS + 59, 59)


def test_a_log_of_nothing_but_dead_records_can_be_read_to_its_end(bench: Bench) -> None:
    log = bench.create(COMPACTED)
    write(bench, log, (b"a", None))
    roll(log)
    compact(log)
    write(bench, log, (None, b"x"))
    roll(log)
    compact(log, NOW_MS + 5000)

    (last,) = headers(bench, log)

    assert (last.next_offset, last.record_count) == (log.log_end_offset, 0) == (2, 0)
    reopened = bench.open(COMPACTED)
    assert reopened.log_end_offset == 2


def test_a_producers_last_sequence_is_kept(bench: Bench) -> None:
    log = bench.create(COMPACTED)
    for sequence in range(3):
        write(
            bench,
            log,
            (b"a", b"%d" % sequence),
            producer_id=7,
            producer_epoch=0,
            base_sequence=sequence,
        )
    write(bench, log, (b"a", b"last"))
    roll(log)
    compact(log)

    shell, last = headers(bench, log)

    assert (shell.producer_id, shell.base_sequence, shell.record_count) == (7, 2, 0)
    assert last.record_count == 1
    log.close()
    for snapshot in bench.directory.glob("*.snapshot"):
        snapshot.unlink()
    reopened = bench.open(COMPACTED)
    assert reopened.producers.entries[7].last_sequence == 2


def test_an_aborted_record_supersedes_nothing(bench: Bench) -> None:
    log = bench.create(COMPACTED)
    write(bench, log, (b"a", b"good"))
    fields = {"producer_id": 7, "producer_epoch": 0}
    write(bench, log, (b"a", b"bad"), base_sequence=0, is_transactional=True, **fields)
    roll(log)
    assert plan(log, NOW_MS) is None  # the transaction is open

    marker = (b"\x00\x00\x00\x00", b"\x00\x00\x00\x00\x00\x00")
    del log.producers.entries[7]  # nobody can append a marker to a log yet
    write(bench, log, marker, is_transactional=True, is_control=True, **fields)
    del log.producers.entries[7]
    roll(log)
    assert compact(log)

    assert (0, b"a", b"good") in kept(bench, log)
    assert [h.is_control for h in headers(bench, log)] == [False, False, True]

    write(bench, log, (b"a", b"better"))
    roll(log)
    compact(log)
    assert table(records(bench, log)[-1:]) == {b"a": b"better"}
    assert (0, b"a", b"good") not in kept(bench, log)
    assert [h.is_control for h in headers(bench, log)] == [True, False]


def test_readers_of_the_old_files_go_on_and_the_files_go_later(bench: Bench) -> None:
    log = bench.create(replace(COMPACTED, file_delete_delay_ms=1000))
    write(bench, log, (b"a", b"1"))
    write(bench, log, (b"a", b"2"))
    roll(log)
    (piece,) = log.read(0, 10_000)
    old = os.pread(piece.file.fd, piece.length, piece.position)

    compact(log)

    assert os.pread(piece.file.fd, piece.length, piece.position) == old
    assert list(bench.directory.glob("*.deleted"))
    enforce_retention(log, NOW_MS + 1000)
    assert not list(bench.directory.glob("*.deleted"))
    assert os.pread(piece.file.fd, piece.length, piece.position) == old


@pytest.mark.parametrize("is_announced", [False, True])
def test_segments_that_changed_meanwhile_are_left_alone(bench: Bench, is_announced: bool) -> None:
    log = bench.create(COMPACTED)
    write(bench, log, (b"a", b"1"))
    roll(log)
    write(bench, log, (b"a", b"2"))
    roll(log)
    cleaning = plan(log, NOW_MS)
    assert cleaning is not None
    cleaning.copy()
    if is_announced:
        assert cleaning.announce()
    log.delete_records(1)
    enforce_retention(log, NOW_MS)

    assert not (cleaning.swap() if is_announced else cleaning.announce())

    assert not list(bench.directory.glob("*.cleaned"))
    assert not list(bench.directory.glob("*.swap"))
    assert kept(bench, log) == [(1, b"a", b"2")]


def test_a_stopped_cleaning_leaves_nothing(bench: Bench) -> None:
    log = bench.create(COMPACTED)
    for index in range(100):
        write(bench, log, (b"a", b"%d" % index))
    roll(log)
    cleaning = plan(log, NOW_MS)
    assert cleaning is not None
    cleaning.stop()

    with pytest.raises(CleaningStoppedError):
        cleaning.copy()

    assert not list(bench.directory.glob("*.cleaned"))
    assert len(records(bench, log)) == 100


def test_damage_is_told_and_nothing_is_rewritten(bench: Bench) -> None:
    log = bench.create(COMPACTED)
    write(bench, log, (b"a", b"1"))
    write(bench, log, (b"a", b"2"))
    roll(log)
    bench.flip(70)
    before = bench.path(0).read_bytes()
    cleaning = plan(log, NOW_MS)
    assert cleaning is not None

    with pytest.raises(CorruptBatchError):
        cleaning.copy()

    assert bench.path(0).read_bytes() == before
    assert not list(bench.directory.glob("*.cleaned"))


def test_more_keys_than_fit_into_memory_are_cleaned_in_parts(bench: Bench) -> None:
    log = bench.create(replace(COMPACTED, segment_bytes=2000))
    for round_ in range(3):
        for index in range(40):
            write(bench, log, (b"key-%d" % index, b"%d" % round_))
    roll(log)
    expected = table(records(bench, log))
    passes = 0

    while compact(log, max_map_bytes=10 * 170):
        passes += 1
        assert table(records(bench, log)) == expected

    assert passes > 5
    assert len(records(bench, log)) == 40
    assert log.cleaner_offset == log.segments[-1].base_offset


def test_a_full_disk_leaves_the_log_as_it_was(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = bench.create(COMPACTED)
    write(bench, log, (b"a", b"1"))
    write(bench, log, (b"a", b"2"))
    roll(log)
    cleaning = plan(log, NOW_MS)
    assert cleaning is not None
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", _no_space)
        with pytest.raises(OSError, match="No space"):
            cleaning.copy()
    assert not list(bench.directory.glob("*.cleaned"))

    again = plan(log, NOW_MS)
    assert again is not None
    again.copy()
    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", _no_space)
        with pytest.raises(StorageWriteError):
            again.announce()
    assert not list(bench.directory.glob("*.cleaned"))
    assert len(records(bench, log)) == 2
    assert compact(log)
    assert kept(bench, log) == [(1, b"a", b"2")]


def _no_space(*_: object, **__: object) -> int:
    raise OSError(28, "No space left on device")


def test_how_far_compaction_came_is_known_after_a_restart(tmp_path: Path, bench: Bench) -> None:
    root = tmp_path / "data"
    logs = LogDirectory(root, node_id=1)
    logs.open(NOW_MS)
    log = logs.create("t", 0, TOPIC_ID, COMPACTED, NOW_MS)
    write(bench, log, (b"a", b"1"))
    write(bench, log, (b"a", b"2"))
    roll(log)
    compact(log)
    logs.close(NOW_MS)

    assert (root / "cleaner-offset-checkpoint").read_text() == "0\n1\nt 0 2\n"
    logs = LogDirectory(root, node_id=1)
    logs.open(NOW_MS)
    log = logs.get("t", 0, TOPIC_ID, COMPACTED, NOW_MS)
    assert log.cleaner_offset == 2
    assert plan(log, NOW_MS) is None
    logs.delete("t", 0)
    logs.close(NOW_MS)
    assert (root / "cleaner-offset-checkpoint").read_text() == "0\n0\n"


def test_a_checkpoint_that_cannot_be_this_logs_is_not_believed(bench: Bench) -> None:
    log = bench.create(COMPACTED)
    write(bench, log, (b"a", b"1"))
    log.close()

    assert bench.open(COMPACTED, cleaner_offset=1).cleaner_offset == 0


def test_a_log_that_kafka_compacted_is_compacted_further(tmp_path: Path) -> None:
    directory = tmp_path / "compacted-0"
    shutil.copytree(KAFKA_DATA / "compacted-0", directory)
    bench = Bench(directory)
    log = bench.open(COMPACTED, cleaner_offset=180)
    expected = table(records(bench, log))
    roll(log)

    assert compact(log, now_ms=1_794_879_783_865)  # its tombstone's horizon

    assert table(records(bench, log)) == expected
    assert [r.offset for r in records(bench, log) if r.value is None and r.offset < 180] == []
    assert verify_directory(directory) == []


def test_verify_finds_nothing_wrong(bench: Bench) -> None:
    log = bench.create(replace(COMPACTED, segment_bytes=900))
    for index in range(80):
        write(bench, log, (b"%d" % (index % 7), b"%d" % index), codec=index % 5)
        if index % 10 == 0:
            write(bench, log, (b"%d" % (index % 3), None))
    compact(log)
    log.close()

    assert verify_directory(bench.directory) == []


@pytest.mark.java
def test_kafkas_own_tool_reads_the_result(bench: Bench) -> None:
    log = bench.create(replace(COMPACTED, segment_bytes=3000))
    for index in range(200):
        write(bench, log, (b"%d" % (index % 7), b"%d" % index), (b"x", b"y"), codec=index % 5)
        if index % 10 == 0:
            write(bench, log, (b"%d" % (index % 3), None), (b"k%d" % index, b"v"))
    compact(log)
    expected = [(r.offset, r.timestamp) for r in records(bench, log)]
    log.close()
    paths = sorted(bench.directory.glob("*.log"))

    deep = dump_log_segments(paths, "--deep-iteration", "--print-data-log")
    indexes = sorted([*bench.directory.glob("*.index"), *bench.directory.glob("*.timeindex")])
    sane = dump_log_segments(indexes, "--verify-index-only")

    assert (deep.return_code, sane.return_code, sane.stderr) == (0, 0, "")
    gaps = ("Non-consecutive offsets in ", " is followed by ")  # of compaction, no defect
    assert [line for line in deep.stderr.splitlines() if not any(g in line for g in gaps)] == []
    assert "isvalid: false" not in deep.stdout
    found = [line.split() for line in deep.stdout.splitlines() if line.startswith("| offset")]
    assert [(int(words[2]), int(words[4])) for words in found] == expected
