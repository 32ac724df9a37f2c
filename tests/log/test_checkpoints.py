from pathlib import Path

import pytest

from headrace.log import checkpoints
from headrace.log.leader_epochs import LeaderEpochs
from headrace.log.names import (
    deleted_directory_name,
    is_deleted_directory,
    parse_partition_directory,
    parse_segment_file,
)
from headrace.model import TopicPartition


def test_offsets_are_written_as_kafka_does(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    offsets = {TopicPartition("a", 0): 7, TopicPartition("b.c-d_e", 12): 2**40}

    checkpoints.write_offsets(path, offsets)

    assert path.read_text() == f"0\n2\na 0 7\nb.c-d_e 12 {2**40}\n"
    assert checkpoints.read_offsets(path) == (offsets, None)


@pytest.mark.parametrize(
    "content", [b"", b"1\n0\n", b"0\n2\na 0 7\n", b"0\n1\na 0\n", b"0\nx\n", b"\xff\xfe\x00"]
)
def test_a_checkpoint_that_makes_no_sense_is_empty_and_says_so(
    tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "checkpoint").write_bytes(content)

    offsets, fault = checkpoints.read_offsets(tmp_path / "checkpoint")

    assert offsets == {}
    assert fault


def test_a_missing_checkpoint_is_empty_without_complaint(tmp_path: Path) -> None:
    assert checkpoints.read_offsets(tmp_path / "none") == ({}, None)


@pytest.mark.parametrize("content", ["", "version: 0\n", "version: 0\ntopic_id: short"])
def test_partition_metadata_that_makes_no_sense_is_none(tmp_path: Path, content: str) -> None:
    assert checkpoints.read_partition_metadata(tmp_path) is None
    (tmp_path / "partition.metadata").write_text(content)

    assert checkpoints.read_partition_metadata(tmp_path) is None


def test_epochs_end_where_the_next_begins(tmp_path: Path) -> None:
    epochs = LeaderEpochs(tmp_path)
    for epoch, start in ((2, 10), (4, 30), (4, 35), (7, 50)):
        epochs.assign(epoch, start)

    found = {epoch: epochs.end_offset_for(epoch, 99) for epoch in (-1, 1, 2, 3, 4, 6, 7, 8)}

    assert found == {
        -1: (-1, -1), 1: (1, 10), 2: (2, 30), 3: (2, 30), 4: (4, 50), 6: (4, 50), 7: (7, 99),
        8: (-1, -1),
    }  # fmt: skip


def test_epochs_are_cut_at_both_ends(tmp_path: Path) -> None:
    epochs = LeaderEpochs(tmp_path)
    for epoch, start in ((2, 10), (4, 30), (7, 50)):
        epochs.assign(epoch, start)

    epochs.cut_start(35)
    assert epochs.entries == [(4, 35), (7, 50)]
    epochs.cut_end(50)
    assert epochs.entries == [(4, 35)]
    epochs.write()

    again = LeaderEpochs(tmp_path)
    assert again.load() is None
    assert (again.entries, again.latest) == ([(4, 35)], 4)


@pytest.mark.parametrize("content", ["1\n0\n", "0\n2\n0 0\n", "0\n1\n0\n", "0\n2\n3 5\n1 9\n", ""])
def test_an_epoch_file_that_makes_no_sense_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "leader-epoch-checkpoint").write_text(content)
    epochs = LeaderEpochs(tmp_path)

    assert epochs.load()
    assert epochs.entries == []


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("orders-0", ("orders", 0)),
        ("a-b.c_d-12", ("a-b.c_d", 12)),
        ("orders", None),
        ("orders-x", None),
        ("__cluster_metadata-0", None),
        ("orders-0.0123-delete", None),
        ("orders-0 copy-1", None),
    ],
)
def test_partition_directories_are_told_by_name(
    name: str, expected: tuple[str, int] | None
) -> None:
    assert parse_partition_directory(name) == expected


def test_segment_files_are_told_by_name() -> None:
    assert parse_segment_file("00000000000000000042.log") == (42, ".log")
    assert parse_segment_file("42.log") is None
    assert parse_segment_file("00000000000000000042.log.deleted") is None


def test_a_deleted_directorys_name_fits_the_file_system() -> None:
    name = deleted_directory_name("t" * 249 + "-0")

    assert len(name) == 255
    assert is_deleted_directory(name)
    assert parse_partition_directory(name) is None
