import pytest
from tests.mirror.conftest import Told

from headrace.client.bus import Bus
from headrace.mirror.endpoint import Endpoint
from headrace.mirror.errors import MirrorError
from headrace.mirror.offset_map import Pair
from headrace.mirror.reading import BatchSize
from headrace.mirror.state import (
    DONE,
    CheckpointKey,
    Key,
    NoteKey,
    PartitionCheckpoint,
    StateRow,
    TopicNote,
    Verified,
    decode,
    encode_key,
    encode_row,
)
from headrace.mirror.state_topic import StateTopic
from headrace.model import TopicPartition


@pytest.mark.parametrize(
    ("key", "row"),
    [
        (
            CheckpointKey("A", "orders", 2),
            StateRow(
                7,
                PartitionCheckpoint(
                    9, 5, 4294967295, False, Verified(3, 1), (Pair(4, 0), Pair(9, 5))
                ),
            ),
        ),
        (
            CheckpointKey("A", "orders", 2),
            StateRow(
                8,
                PartitionCheckpoint(9, 5, 1, True, Verified(3, 1, False), (Pair(4, 0),), "s", "t"),
            ),
        ),
        (
            NoteKey("A", "orders"),
            StateRow(
                1, TopicNote("mirror", "s", "t", ("A", "B"), DONE, {"retention.ms": "-1"}, "T")
            ),
        ),
    ],
)
def test_what_is_written_is_what_is_read(key: Key, row: StateRow) -> None:
    assert decode(encode_key(key), encode_row(row)) == (key, row)


@pytest.mark.parametrize(
    ("key", "value"), [(b"", b""), (b'["x", 1]', b'{"revision": 1}'), (b"[1]", b"{}"), (b"1", b"1")]
)
def test_a_foreign_record_is_named(key: bytes, value: bytes) -> None:
    with pytest.raises(MirrorError, match="was not written by this version"):
        decode(key, value)


def test_a_checkpoint_of_a_topic_that_had_the_name_before_is_not_gone_on_from() -> None:
    state = StateTopic(Endpoint("--to", Bus(), listener=Told()))
    note = TopicNote("mirror", "s", "t", ("A",), DONE, {})
    old = PartitionCheckpoint(9, 5, 1, True, Verified(), (Pair(4, 0),), "s", "t")
    place = TopicPartition("orders", 2)

    def found(note: TopicNote, checkpoint: PartitionCheckpoint) -> PartitionCheckpoint | None:
        state.remember(NoteKey("A", "orders"), note)
        state.remember(CheckpointKey("A", "orders", 2), checkpoint)
        return state.checkpoint("A", place)

    assert found(note, old) == old
    assert found(note._replace(source_topic_id="s2"), old) is None
    assert found(note._replace(target_topic_id="t2"), old) is None
    unknown = old._replace(source_topic_id="", target_topic_id="")
    assert found(note, unknown) == unknown, "an earlier version has written it"


def test_large_messages_are_asked_for_in_small_numbers() -> None:
    batch = BatchSize()
    first = batch.count
    for _ in range(10):
        batch.seen(batch.count, batch.count * 100)
    many = batch.count
    batch.seen(100, 100 * 1024 * 1024)

    assert first < many
    assert batch.count * 1024 * 1024 <= 8 * 1024 * 1024
