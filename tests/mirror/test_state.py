import pytest

from headrace.errors import MirrorError
from headrace.mirror.batch_size import BatchSize
from headrace.mirror.offset_map import Pair
from headrace.mirror.state import (
    DONE,
    Checkpoint,
    CheckpointKey,
    Key,
    NoteKey,
    Row,
    TopicNote,
    Verified,
    decode,
    encode_key,
    encode_row,
)


@pytest.mark.parametrize(
    ("key", "row"),
    [
        (
            CheckpointKey("A", "orders", 2),
            Row(7, Checkpoint(9, 5, 4294967295, False, Verified(3, 1), (Pair(4, 0), Pair(9, 5)))),
        ),
        (
            NoteKey("A", "orders"),
            Row(1, TopicNote("mirror", "s", "t", ("A", "B"), DONE, {"retention.ms": "-1"})),
        ),
    ],
)
def test_what_is_written_is_what_is_read(key: Key, row: Row) -> None:
    assert decode(encode_key(key), encode_row(row)) == (key, row)


@pytest.mark.parametrize(
    ("key", "value"), [(b"", b""), (b'["x", 1]', b'{"revision": 1}'), (b"[1]", b"{}"), (b"1", b"1")]
)
def test_a_foreign_record_is_named(key: bytes, value: bytes) -> None:
    with pytest.raises(MirrorError, match="was not written by this version"):
        decode(key, value)


def test_large_messages_are_asked_for_in_small_numbers() -> None:
    batch = BatchSize()
    first = batch.count
    for _ in range(10):
        batch.seen(batch.count, batch.count * 100)
    many = batch.count
    batch.seen(100, 100 * 1024 * 1024)

    assert first < many
    assert batch.count * 1024 * 1024 <= 8 * 1024 * 1024
