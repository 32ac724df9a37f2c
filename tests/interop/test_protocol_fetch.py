"""Fetch: which bytes come, when, and with which error, on both engines."""

import uuid
from collections.abc import Callable
from typing import Any

import pytest
from tests.interop.wire import (
    DELETE_RECORDS,
    DELETE_TOPICS,
    FETCH,
    Engine,
    WireClient,
    batch_of,
    fetch_fields,
    request,
)

from headrace.records.batch import BatchHeader, peek_header

NONE, OFFSET_OUT_OF_RANGE, UNKNOWN_TOPIC = 0, 1, 3
UNKNOWN_LEADER_EPOCH, UNKNOWN_TOPIC_ID = 75, 100
LONGER_THAN_THE_TEST_MS = 600_000


def whole_batches(records: bytes) -> list[BatchHeader]:
    """The batches in an answer. Real Kafka may cut the last one at the limit."""
    found = []
    position = 0
    while head := peek_header(records, position):
        if position + head.size > len(records):
            break
        found.append(head)
        position += head.size
    return found


def base_offsets(partition: Any) -> list[int]:
    return [head.base_offset for head in whole_batches(partition.records or b"")]


@pytest.mark.parametrize("version", range(4, 19))
def test_every_version_fetches(wire: WireClient, topic: str, version: int) -> None:
    wire.produce(topic, batch_of(3))
    wire.produce(topic, batch_of(2))
    fields = fetch_fields({topic: 0})
    partition = fields["topics"][0]["partitions"][0]
    if version < 7:
        for name in ("session_id", "session_epoch", "forgotten_topics_data"):
            del fields[name]
    if version < 11:
        del fields["rack_id"]
    if version >= 13:
        fields["topics"] = [{"topic_id": wire.topic_id(topic), "partitions": [partition]}]
    if version >= 15:
        del fields["replica_id"]

    answer = wire.call(FETCH, version, **fields)

    fetched = answer.responses[0].partitions[0]
    assert (fetched.error_code, fetched.high_watermark, fetched.last_stable_offset) == (0, 5, 5)
    assert fetched.aborted_transactions is None
    assert base_offsets(fetched) == [0, 3]
    if version >= 5:
        assert fetched.log_start_offset == 0


def test_an_offset_inside_a_batch_brings_the_whole_batch(wire: WireClient, topic: str) -> None:
    for _ in range(3):
        wire.produce(topic, batch_of(10))

    assert base_offsets(wire.fetch(topic, 0)) == [0, 10, 20]
    assert base_offsets(wire.fetch(topic, 10)) == [10, 20]
    assert base_offsets(wire.fetch(topic, 15)) == [10, 20]
    assert base_offsets(wire.fetch(topic, 29)) == [20]


def test_the_end_of_the_log_has_nothing_and_no_error(wire: WireClient, topic: str) -> None:
    wire.produce(topic, batch_of(3))

    fetched = wire.fetch(topic, 3)

    assert (fetched.error_code, fetched.records, fetched.high_watermark) == (NONE, b"", 3)


@pytest.mark.parametrize("offset", [4, 1_000_000, -1])
def test_an_offset_outside_the_log_is_out_of_range(
    wire: WireClient, topic: str, offset: int
) -> None:
    wire.produce(topic, batch_of(3))

    fetched = wire.fetch(topic, offset)

    # Kafka's high watermark is -1 then; headrace tells the right one, as there is one.
    assert (fetched.error_code, fetched.records or b"") == (OFFSET_OUT_OF_RANGE, b"")


def test_deleted_records_are_out_of_range_and_the_rest_of_their_batch_is_served(
    wire: WireClient, topic: str
) -> None:
    wire.produce(topic, batch_of(10))
    delete_to(wire, topic, 5)

    below, at_start = wire.fetch(topic, 4), wire.fetch(topic, 5)

    assert below.error_code == OFFSET_OUT_OF_RANGE
    assert (at_start.error_code, at_start.log_start_offset) == (NONE, 5)
    assert base_offsets(at_start) == [0]


def delete_to(wire: WireClient, topic: str, offset: int) -> None:
    partitions = [{"partition_index": 0, "offset": offset}]
    topics = [{"name": topic, "partitions": partitions}]
    answer = wire.call(DELETE_RECORDS, 2, topics=topics, timeout=1000)
    assert answer.topics[0].partitions[0].error_code == NONE


@pytest.mark.parametrize("limit", ["max_bytes", "partition_max_bytes"])
def test_the_first_batch_comes_whole_however_small_the_limit(
    wire: WireClient, topic: str, limit: str
) -> None:
    wire.produce(topic, batch_of(100))
    wire.produce(topic, batch_of(100))

    fetched = wire.fetch(topic, 0, **{limit: 1})

    assert base_offsets(fetched) == [0]


@pytest.mark.parametrize("limit", ["max_bytes", "partition_max_bytes"])
def test_a_limit_is_kept_from_the_second_batch_on(wire: WireClient, topic: str, limit: str) -> None:
    batch = batch_of(10)
    for _ in range(5):
        wire.produce(topic, batch)

    fetched = wire.fetch(topic, 0, **{limit: 3 * len(batch)})

    assert base_offsets(fetched) == [0, 10, 20]
    assert len(fetched.records) <= 3 * len(batch)


def test_max_bytes_counts_over_all_partitions(
    wire: WireClient, new_topic: Callable[..., str]
) -> None:
    first, second = new_topic(), new_topic()
    batch = batch_of(10)
    for topic in (first, second):
        wire.produce(topic, batch)

    answer = wire.call(FETCH, 12, **fetch_fields({first: 0, second: 0}, max_bytes=len(batch)))

    served = {topic.topic: base_offsets(topic.partitions[0]) for topic in answer.responses}
    assert served == {first: [0], second: []}


def test_what_is_not_there_has_kafkas_errors(wire: WireClient, topic: str) -> None:
    fields = fetch_fields({topic: 0})
    fields["topics"][0]["partitions"][0]["partition"] = 7

    no_partition = wire.call(FETCH, 12, **fields).responses[0].partitions[0]
    no_topic = wire.fetch("no-such-topic", 0)

    assert (no_partition.error_code, no_topic.error_code) == (UNKNOWN_TOPIC, UNKNOWN_TOPIC)
    assert (no_topic.high_watermark, no_topic.records or b"") == (-1, b"")


@pytest.mark.parametrize("version", [13, 15, 18])
def test_an_unknown_topic_id_has_its_own_error(wire: WireClient, version: int) -> None:
    unknown = uuid.uuid4()
    fields = fetch_fields({"any": 0})
    partitions = fields["topics"][0]["partitions"]
    fields["topics"] = [{"topic_id": unknown, "partitions": partitions}]
    if version >= 15:
        del fields["replica_id"]

    answer = wire.call(FETCH, version, **fields)

    assert answer.error_code == NONE
    assert answer.responses[0].topic_id == unknown
    assert answer.responses[0].partitions[0].error_code == UNKNOWN_TOPIC_ID


def test_a_leader_epoch_from_the_future_is_unknown(wire: WireClient, topic: str) -> None:
    wire.produce(topic, batch_of(1))
    errors = []
    for epoch in (-1, 0, 9):
        fields = fetch_fields({topic: 0})
        fields["topics"][0]["partitions"][0]["current_leader_epoch"] = epoch
        errors.append(wire.call(FETCH, 12, **fields).responses[0].partitions[0].error_code)

    assert errors == [NONE, NONE, UNKNOWN_LEADER_EPOCH]


def test_read_committed_has_an_empty_list_of_aborted_transactions(
    wire: WireClient, topic: str
) -> None:
    wire.produce(topic, batch_of(1))

    answer = wire.call(FETCH, 12, **{**fetch_fields({topic: 0}), "isolation_level": 1})

    fetched = answer.responses[0].partitions[0]
    assert (base_offsets(fetched), fetched.last_stable_offset) == ([0], 1)
    assert fetched.aborted_transactions == ()


def test_a_waiting_fetch_wakes_when_a_message_comes(
    wire: WireClient, topic: str, engine: Engine
) -> None:
    fields = fetch_fields({topic: 0}, max_wait=LONGER_THAN_THE_TEST_MS, min_bytes=1)
    wire.send(request(FETCH, 12, **fields))
    with WireClient(engine.bootstrap) as other:
        other.produce(topic, batch_of(3))

    fetched = wire.receive().responses[0].partitions[0]

    assert (base_offsets(fetched), fetched.high_watermark) == ([0], 3)


def test_a_waiting_fetch_wakes_only_when_min_bytes_are_there(
    wire: WireClient, new_topic: Callable[..., str], engine: Engine
) -> None:
    first, second = new_topic(), new_topic()
    batch = batch_of(10)
    fields = fetch_fields(
        {first: 0, second: 0}, max_wait=LONGER_THAN_THE_TEST_MS, min_bytes=3 * len(batch)
    )
    wire.send(request(FETCH, 12, **fields))
    with WireClient(engine.bootstrap) as other:
        other.produce(first, batch)
        other.produce(second, batch)
        other.produce(first, batch)

    answer = wire.receive()

    # Bytes are counted over all partitions; with one batch less it would have gone on waiting.
    served = {topic.topic: base_offsets(topic.partitions[0]) for topic in answer.responses}
    assert served == {first: [0, 10], second: [0]}


def test_a_fetch_that_may_not_wait_comes_back_empty(wire: WireClient, topic: str) -> None:
    fetched = wire.fetch(topic, 0, max_wait=0, min_bytes=1)

    assert (fetched.error_code, fetched.records) == (NONE, b"")


def test_a_short_wait_ends_without_a_message(wire: WireClient, topic: str) -> None:
    fetched = wire.fetch(topic, 0, max_wait=50, min_bytes=1)

    assert (fetched.error_code, fetched.records) == (NONE, b"")


def test_an_offset_out_of_range_ends_the_wait_of_all_partitions(
    wire: WireClient, new_topic: Callable[..., str]
) -> None:
    first, second = new_topic(), new_topic()
    fields = fetch_fields({first: 0, second: 5}, max_wait=LONGER_THAN_THE_TEST_MS, min_bytes=1)

    answer = wire.call(FETCH, 12, **fields)

    errors = {part.topic: part.partitions[0].error_code for part in answer.responses}
    assert errors == {first: NONE, second: OFFSET_OUT_OF_RANGE}


def test_a_waiting_fetch_wakes_when_its_topic_is_deleted(
    wire: WireClient, topic: str, engine: Engine
) -> None:
    fields = fetch_fields({topic: 0}, max_wait=LONGER_THAN_THE_TEST_MS, min_bytes=1)
    wire.send(request(FETCH, 12, **fields))
    with WireClient(engine.bootstrap) as other:
        topics = [{"name": topic, "topic_id": None}]
        deleted = other.call(DELETE_TOPICS, 6, topics=topics, timeout=10_000)
        assert deleted.responses[0].error_code == NONE

    fetched = wire.receive().responses[0].partitions[0]

    assert fetched.error_code == UNKNOWN_TOPIC
