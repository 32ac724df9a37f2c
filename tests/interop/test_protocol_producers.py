"""Idempotent producers: sequences, epochs and the last five batches, on both engines."""

from pathlib import Path
from typing import Any

import pytest
from tests.interop.wire import (
    INIT_PRODUCER_ID,
    LATEST,
    PRODUCE,
    T0,
    WireClient,
    batch_of,
    produce_fields,
    request,
)

from headrace.testing import broker_process, running_broker

(
    NONE,
    COORDINATOR_LOAD_IN_PROGRESS,
    OUT_OF_ORDER_SEQUENCE,
    INVALID_PRODUCER_EPOCH,
    INVALID_RECORD,
) = 0, 14, 45, 47, 87
MAX_SEQUENCE = 2**31 - 1


def produce(
    wire: WireClient,
    topic: str,
    producer_id: int,
    sequence: int,
    *,
    count: int = 1,
    epoch: int = 0,
    timestamp: int = T0,
) -> tuple[int, int]:
    """Append one batch of an idempotent producer; return error code and base offset."""
    batch = batch_of(
        count,
        timestamp=timestamp,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
    )
    answer = wire.produce(topic, batch)
    return int(answer.error_code), answer.base_offset


def init_producer(wire: WireClient, version: int = 4) -> Any:
    fields: dict[str, Any] = {"transactional_id": None, "transaction_timeout": 60_000}
    if version >= 3:
        fields |= {"producer_id": -1, "producer_epoch": -1}
    answer = wire.call(INIT_PRODUCER_ID, version, **fields)
    # Real Kafka, just started, has first to get a block of ids from its controller.
    while answer.error_code == COORDINATOR_LOAD_IN_PROGRESS:
        answer = wire.call(INIT_PRODUCER_ID, version, **fields)
    return answer


@pytest.fixture
def producer_id(wire: WireClient) -> int:
    return int(init_producer(wire).producer_id)


@pytest.mark.parametrize("version", range(6))
def test_every_init_producer_id_gives_a_new_id(wire: WireClient, version: int) -> None:
    first, second = init_producer(wire, version), init_producer(wire, version)

    assert (first.error_code, first.producer_epoch) == (NONE, 0)
    assert 0 <= first.producer_id < second.producer_id


def test_a_repeated_batch_gets_its_first_offset_back(
    wire: WireClient, topic: str, producer_id: int
) -> None:
    first = produce(wire, topic, producer_id, 0, count=3)
    again = produce(wire, topic, producer_id, 0, count=3)

    assert (first, again) == ((NONE, 0), (NONE, 0))
    assert wire.list_offset(topic, LATEST).offset == 3


def test_the_last_five_batches_are_remembered(
    wire: WireClient, topic: str, producer_id: int
) -> None:
    for sequence in range(6):
        assert produce(wire, topic, producer_id, sequence) == (NONE, sequence)

    repeated = [produce(wire, topic, producer_id, sequence) for sequence in range(1, 6)]
    too_old = produce(wire, topic, producer_id, 0)

    assert repeated == [(NONE, sequence) for sequence in range(1, 6)]
    assert too_old[0] == OUT_OF_ORDER_SEQUENCE
    assert wire.list_offset(topic, LATEST).offset == 6


def test_a_gap_is_refused_and_the_right_batch_still_taken(
    wire: WireClient, topic: str, producer_id: int
) -> None:
    assert produce(wire, topic, producer_id, 0, count=3) == (NONE, 0)

    gap = produce(wire, topic, producer_id, 4)
    right = produce(wire, topic, producer_id, 3)

    assert (gap[0], right) == (OUT_OF_ORDER_SEQUENCE, (NONE, 3))


def test_a_batch_that_only_overlaps_is_no_duplicate(
    wire: WireClient, topic: str, producer_id: int
) -> None:
    assert produce(wire, topic, producer_id, 0, count=3) == (NONE, 0)

    assert produce(wire, topic, producer_id, 0, count=2)[0] == OUT_OF_ORDER_SEQUENCE
    assert produce(wire, topic, producer_id, 1, count=3)[0] == OUT_OF_ORDER_SEQUENCE


def test_an_unknown_producer_may_start_anywhere(
    wire: WireClient, topic: str, producer_id: int
) -> None:
    # Its state may have expired: Kafka takes its word for where it is.
    assert produce(wire, topic, producer_id, 17) == (NONE, 0)
    assert produce(wire, topic, producer_id, 18) == (NONE, 1)


def test_a_new_epoch_starts_at_0_and_shuts_the_old_one_out(
    wire: WireClient, topic: str, producer_id: int
) -> None:
    assert produce(wire, topic, producer_id, 0, epoch=3) == (NONE, 0)

    in_the_middle = produce(wire, topic, producer_id, 5, epoch=4)
    at_0 = produce(wire, topic, producer_id, 0, epoch=4)
    old = produce(wire, topic, producer_id, 1, epoch=3)

    assert in_the_middle[0] == OUT_OF_ORDER_SEQUENCE
    assert at_0 == (NONE, 1)
    assert old[0] == INVALID_PRODUCER_EPOCH


def test_sequences_go_on_at_0_after_the_last_number(
    wire: WireClient, topic: str, producer_id: int
) -> None:
    assert produce(wire, topic, producer_id, MAX_SEQUENCE - 1, count=4) == (NONE, 0)

    # MAX - 1, MAX, 0, 1 are taken.
    assert produce(wire, topic, producer_id, MAX_SEQUENCE)[0] == OUT_OF_ORDER_SEQUENCE
    assert produce(wire, topic, producer_id, 2) == (NONE, 4)
    assert produce(wire, topic, producer_id, MAX_SEQUENCE - 1, count=4) == (NONE, 0)


def test_a_producer_without_a_sequence_is_refused(
    wire: WireClient, topic: str, producer_id: int
) -> None:
    assert produce(wire, topic, producer_id, -1)[0] == INVALID_RECORD


def test_producers_and_partitions_do_not_share_sequences(
    wire: WireClient, new_topic: Any, producer_id: int
) -> None:
    topic = new_topic(partitions=2)
    other_id = int(init_producer(wire).producer_id)
    batch = batch_of(1, producer_id=producer_id, producer_epoch=0, base_sequence=0)

    assert produce(wire, topic, producer_id, 0) == (NONE, 0)
    assert produce(wire, topic, other_id, 0) == (NONE, 1)
    assert wire.produce(topic, batch, partition=1).base_offset == 0


def test_five_batches_sent_at_once_keep_their_order(
    wire: WireClient, topic: str, producer_id: int
) -> None:
    # Each batch is checked against the one before it, which may not be written yet.
    for sequence in range(5):
        batch = batch_of(1, producer_id=producer_id, producer_epoch=0, base_sequence=sequence)
        wire.send(request(PRODUCE, 9, **produce_fields(topic, batch)))
    answers = [wire.receive().responses[0].partition_responses[0] for _ in range(5)]

    assert [(answer.error_code, answer.base_offset) for answer in answers] == [
        (NONE, offset) for offset in range(5)
    ]


@pytest.mark.parametrize("timestamp", [T0, 1], ids=["years ago", "1970"])
@pytest.mark.parametrize("is_clean", [True, False], ids=["stop", "kill"])
def test_producers_are_remembered_over_a_restart_of_headrace(
    tmp_path: Path, is_clean: bool, timestamp: int
) -> None:
    # A backfill: Kafka expires a producer by the timestamps of its records, headrace does not.
    with broker_process(tmp_path) as broker, WireClient(broker.bootstrap) as wire:
        wire.create_topic("t", retention_ms=-1)
        producer_id = int(init_producer(wire).producer_id)
        for sequence in range(3):
            answer = produce(wire, "t", producer_id, sequence, timestamp=timestamp)
            assert answer == (NONE, sequence)
        if not is_clean:
            broker.kill()

    with running_broker(tmp_path) as again, WireClient(again.bootstrap) as wire:
        for sequence in (2, 0, 1):
            assert produce(wire, "t", producer_id, sequence, timestamp=timestamp) == (
                NONE,
                sequence,
            )
        gap = produce(wire, "t", producer_id, 4, timestamp=timestamp)
        assert gap[0] == OUT_OF_ORDER_SEQUENCE
        assert produce(wire, "t", producer_id, 3, timestamp=timestamp) == (NONE, 3)
        assert init_producer(wire).producer_id > producer_id
