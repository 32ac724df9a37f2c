from collections import namedtuple

import pytest
from kio.schema.list_offsets.v11.response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kio.static.primitive import i32

from headrace.broker.handlers.throttle import NO_THROTTLE
from headrace.protocol.weight import is_heavier

Answer = namedtuple("Answer", "error topics")


def listed(topics: int, partitions: int) -> ListOffsetsResponse:
    one = ListOffsetsPartitionResponse(partition_index=i32(0), error_code=0)
    topic = ListOffsetsTopicResponse(name="t", partitions=(one,) * partitions)
    return ListOffsetsResponse(throttle_time=NO_THROTTLE, topics=(topic,) * topics)


@pytest.mark.parametrize(
    ("topics", "partitions", "limit", "expected"),
    [(0, 0, 0, False), (3, 4, 15, False), (3, 4, 14, True), (100, 0, 99, True), (1, 99, 99, True)],
)
def test_elements_are_counted_at_any_depth(
    topics: int, partitions: int, limit: int, expected: bool
) -> None:
    assert is_heavier(listed(topics, partitions), limit) is expected


def test_named_tuples_are_messages_too_and_numbers_count_as_one_each() -> None:
    assert is_heavier(Answer(0, (listed(1, 5),)), 6)
    assert not is_heavier(Answer(0, (1, 2, 3)), 3)
    assert not is_heavier(None, 0)
