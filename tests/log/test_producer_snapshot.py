from pathlib import Path
from typing import Any

import pytest

from headrace.log.producer_snapshot import (
    ProducerSnapshots,
    SnapshotError,
    decode_snapshot,
    encode_snapshot,
)
from headrace.log.producer_state import ProducerBatch, ProducerEntry

ENTRY = ProducerEntry(1, (ProducerBatch(3, 9, 1, -1),), 50)


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data[:9],
        lambda data: b"\x00\x02" + data[2:],
        lambda data: data[:-1],
        lambda data: data[:20] + bytes([data[20] ^ 1]) + data[21:],
    ],
    ids=["short", "version", "cut", "flipped"],
)
def test_a_snapshot_that_was_changed_is_refused(change: Any) -> None:
    entry = ProducerEntry(1, (ProducerBatch(3, 9, 1, -1),), 50)
    data = encode_snapshot({4: entry})
    assert decode_snapshot(data) == {4: entry._replace(is_partial=True)}

    with pytest.raises(SnapshotError):
        decode_snapshot(change(data))


def test_a_snapshot_is_taken_only_behind_the_latest(tmp_path: Path) -> None:
    snapshots = ProducerSnapshots(tmp_path)

    taken = snapshots.take(10, {4: ENTRY})

    assert taken is not None
    assert decode_snapshot(taken.read_bytes()) == {4: ENTRY._replace(is_partial=True)}
    assert snapshots.take(10, {}) is None
    assert snapshots.take(9, {}) is None
    assert (snapshots.latest, snapshots.offsets()) == (10, [10])


def test_a_snapshot_that_a_full_disk_refuses_is_done_without(tmp_path: Path) -> None:
    snapshots = ProducerSnapshots(tmp_path / "missing")

    assert snapshots.take(10, {}) is None
    assert snapshots.latest == 0


def test_snapshots_of_what_never_was_are_taken_back(tmp_path: Path) -> None:
    snapshots = ProducerSnapshots(tmp_path)
    for offset in (10, 20, 30):
        snapshots.take(offset, {})

    snapshots.take_back(10, [10, 20, 30])

    assert (snapshots.latest, snapshots.offsets()) == (10, [10])


def test_each_segments_snapshot_and_the_latest_stay(tmp_path: Path) -> None:
    snapshots = ProducerSnapshots(tmp_path)
    for offset in (10, 15, 20, 25, 30):
        snapshots.write(offset, {})

    snapshots.remove_strays({0, 10, 20}, end_offset=27)
    snapshots.find_latest()

    assert (snapshots.latest, snapshots.offsets()) == (25, [10, 20, 25])


def test_the_latest_sound_snapshot_is_loaded_and_unsound_ones_go(tmp_path: Path) -> None:
    snapshots = ProducerSnapshots(tmp_path)
    snapshots.write(10, {4: ENTRY})
    snapshots.write(20, {}).write_bytes(b"no snapshot at all")
    snapshots.write(30, {})
    repairs: list[str] = []

    found = snapshots.load(29, repairs)

    assert found == (10, {4: ENTRY._replace(is_partial=True)})
    assert snapshots.offsets() == [10, 30]
    assert len(repairs) == 1
