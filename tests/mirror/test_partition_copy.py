from typing import Any
from zlib import crc32

import pytest

from headrace.mirror.content import content
from headrace.mirror.errors import MirrorError
from headrace.mirror.partition_copy import CopyMark, Overlap, PartitionCopy, first_checkpoint
from headrace.model import TopicPartition

PLACE = TopicPartition("orders", 0)


class Message:
    """As much of confluent_kafka's as is looked at."""

    def __init__(self, offset: int, value: bytes) -> None:
        self._offset, self._value = offset, value

    def offset(self) -> int:
        return self._offset

    def key(self) -> bytes | None:
        return None

    def value(self) -> bytes:
        return self._value

    def timestamp(self) -> tuple[int, int]:
        return 1, 5

    def headers(self) -> None:
        return None


def messages(*offsets: int) -> list[Any]:
    return [Message(offset, b"%d" % offset) for offset in offsets]


def copy_with(there: list[Any], end: int) -> PartitionCopy:
    overlap = Overlap(0, end)
    overlap.put(there)
    return PartitionCopy(PLACE, first_checkpoint(10), caught_up_at=100, overlap=overlap)


def test_what_has_arrived_is_compared_and_passed_over() -> None:
    """Source offsets 10, 12 and 13 lie at 0, 1 and 2 of the target."""
    copy = copy_with([Message(0, b"10"), Message(1, b"12"), Message(2, b"13")], 3)

    rest = copy.pass_over(messages(10, 12))
    assert rest == []
    assert copy.overlap is not None
    rest = copy.pass_over(messages(13, 14, 15))

    assert [each.offset() for each in rest] == [14, 15]
    chain = b"".join(piece for at in (10, 12, 13) for piece in content(None, b"%d" % at, 5, None))
    assert copy.sent == CopyMark(14, 3, crc32(chain))
    assert copy.overlap is None


def test_a_difference_ends_it_with_the_place() -> None:
    copy = copy_with([Message(0, b"10"), Message(1, b"foreign")], 2)

    with pytest.raises(MirrorError, match=r"orders-0: the target's record 1 .* offset 12"):
        copy.pass_over(messages(10, 12))


def test_what_the_target_has_removed_since_is_not_compared() -> None:
    copy = copy_with([Message(1, b"12")], 2)

    assert copy.pass_over(messages(10, 12)) == []
    assert copy.overlap is None


def test_a_checkpoint_claims_only_what_has_arrived() -> None:
    copy = PartitionCopy(PLACE, first_checkpoint(0), caught_up_at=10)
    copy.sent = CopyMark(5, 5, 1)
    copy.acknowledged(CopyMark(3, 3, 2))
    copy.passed(9)

    assert copy.checkpoint(is_clean=False)[:3] == (3, 3, 2)
    copy.acknowledged(CopyMark(5, 5, 1))
    assert copy.checkpoint(is_clean=False)[:3] == (9, 5, 1)
    assert not copy.is_caught_up
