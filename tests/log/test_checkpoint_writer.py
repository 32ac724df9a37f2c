from pathlib import Path

import pytest

from headrace.log import checkpoints
from headrace.log.checkpoint_writer import CheckpointWriter
from headrace.log.errors import StorageWriteError
from headrace.model import TopicPartition

PARTITION = TopicPartition("t", 0)


def written(path: Path) -> dict[TopicPartition, int]:
    offsets, fault = checkpoints.read_offsets(path / checkpoints.RECOVERY_POINTS)
    assert fault is None
    return offsets


def test_what_was_prepared_last_wins_whatever_is_written_first(tmp_path: Path) -> None:
    writer = CheckpointWriter(tmp_path)
    old = writer.prepare({checkpoints.RECOVERY_POINTS: {PARTITION: 1}})
    new = writer.prepare({checkpoints.RECOVERY_POINTS: {PARTITION: 2}})

    new()
    old()

    assert written(tmp_path) == {PARTITION: 2}


def test_a_failed_write_may_be_followed_by_a_good_one(tmp_path: Path) -> None:
    path = tmp_path / "gone"
    writer = CheckpointWriter(path)
    first = writer.prepare({checkpoints.RECOVERY_POINTS: {PARTITION: 1}})
    with pytest.raises(StorageWriteError):
        first()
    path.mkdir()

    writer.prepare({checkpoints.RECOVERY_POINTS: {PARTITION: 2}})()

    assert written(path) == {PARTITION: 2}
