from pathlib import Path

from headrace.log.errors import CorruptBatchError


def test_a_corrupt_batch_names_file_and_position() -> None:
    error = CorruptBatchError(Path("a/0.log"), 61, "CRC does not match")

    assert str(error) == "a/0.log is damaged at byte 61: CRC does not match"
