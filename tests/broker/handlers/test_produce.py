"""Requests that take long: served in parts and aside, while others have the loop."""

import asyncio
import threading
from datetime import timedelta
from typing import Any

import pytest
from kio.schema.produce.v9.request import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.hardship.conftest import Wire, a_batch, wait_until

from headrace.broker import batch_checks, turns
from headrace.broker.handlers import produce as produce_handler
from headrace.records.codecs import Codec
from headrace.testing import RunningBroker, running_broker

PARTITIONS = 100
BOMB_BYTES = 3 * 1024 * 1024


@pytest.fixture
def broker() -> Any:
    with running_broker(**{"headrace.debug.checks": True}) as broker:
        wire = Wire(broker.port)
        assert wire.create_topic("t", PARTITIONS) == 0
        wire.close()
        yield broker


@pytest.fixture
def wire(broker: RunningBroker) -> Any:
    wire = Wire(broker.port)
    yield wire
    wire.close()


def request(*batches: tuple[int, bytes], acks: int = -1) -> ProduceRequest:
    data = tuple(PartitionProduceData(index=at, records=batch) for at, batch in batches)
    return ProduceRequest(
        acks=acks,
        timeout=timedelta(seconds=10),
        topic_data=(TopicProduceData(name="t", partition_data=data),),
    )


def codes(answer: Any) -> list[int]:
    return [int(one.error_code) for one in answer.responses[0].partition_responses]


@pytest.mark.parametrize("acks", [1, -1])
def test_a_request_for_many_partitions_gives_others_their_turns(
    broker: RunningBroker, wire: Wire, monkeypatch: pytest.MonkeyPatch, acks: int
) -> None:
    monkeypatch.setattr(turns, "SLICE_SECONDS", 0.0)
    seen = 0
    is_over = threading.Event()

    async def count() -> None:
        nonlocal seen
        while not is_over.is_set():
            seen += 1
            await asyncio.sleep(0)

    counting = asyncio.run_coroutine_threadsafe(count(), broker.loop)
    answer = wire.ask(
        request(*((at, a_batch([b"%d" % at])) for at in range(PARTITIONS)), acks=acks)
    )
    is_over.set()
    counting.result(30)

    assert codes(answer) == [0] * PARTITIONS
    assert seen >= PARTITIONS
    assert [wire.values("t", at) for at in (0, 50, 99)] == [[b"0"], [b"50"], [b"99"]]


def test_what_inflates_to_much_is_checked_in_another_thread_and_keeps_its_place(
    broker: RunningBroker, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[str] = []
    check = batch_checks.check_for_append

    def noted(*arguments: Any) -> Any:
        threads.append(threading.current_thread().name)
        return check(*arguments)

    monkeypatch.setattr(batch_checks, "check_for_append", noted)
    large = a_batch([b"x" * BOMB_BYTES, b"large"], codec=Codec.ZSTD)

    for value in (a_batch([b"before"]), large, a_batch([b"after"]), large, a_batch([b"end"])):
        wire.send_batch("t", 0, value)
    offsets = [wire.receive_ack().base_offset for _ in range(5)]

    assert offsets == [0, 1, 3, 4, 6]
    assert [value[:6] for value in wire.values("t") if value is not None] == [
        b"before", b"xxxxxx", b"large", b"after", b"xxxxxx", b"large", b"end",
    ]  # fmt: skip
    assert sum(name.startswith("check") for name in threads) == 2


def test_all_batches_of_a_request_share_one_allowance(broker: RunningBroker, wire: Wire) -> None:
    bomb = a_batch([bytes(60 * 1024 * 1024)], codec=Codec.ZSTD)

    answer = wire.ask(request(*((at, bomb) for at in range(4))))

    assert codes(answer) == [0, 0, 10, 10]  # MESSAGE_TOO_LARGE: 128 MiB are used up


def test_a_bad_batch_among_many_is_refused_alone(broker: RunningBroker, wire: Wire) -> None:
    batches = [(at, a_batch([b"v"])) for at in range(PARTITIONS)]
    damaged = bytearray(batches[7][1])
    damaged[-1] ^= 0xFF
    batches[7] = (7, bytes(damaged))
    batches.append((PARTITIONS, a_batch([b"nowhere"])))

    answer = wire.ask(request(*batches))

    expected = [0] * (PARTITIONS + 1)
    expected[7], expected[PARTITIONS] = 2, 3  # CORRUPT_MESSAGE, UNKNOWN_TOPIC_OR_PARTITION
    assert codes(answer) == expected
    assert wire.values("t", 7) == []


def test_a_client_that_leaves_while_its_batch_is_checked_has_sent_it(
    broker: RunningBroker, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_check, is_checking = threading.Event(), threading.Event()
    check = batch_checks.check_for_append

    def slow(*arguments: Any) -> Any:
        if threading.current_thread().name.startswith("check"):
            is_checking.set()
            assert may_check.wait(60)
        return check(*arguments)

    monkeypatch.setattr(batch_checks, "check_for_append", slow)
    leaver = Wire(broker.port)
    leaver.send_batch("t", 0, a_batch([b"x" * BOMB_BYTES], codec=Codec.ZSTD))
    assert is_checking.wait(60)

    leaver.close()
    assert wire.produce_values("t", b"others are served", partition=1).error_code == 0
    may_check.set()

    async def is_served() -> bool:
        return not broker.server.service._tasks

    wait_until(lambda: broker.run(is_served), "the batch is checked", 60)
    assert len(wire.values("t")) == 1


def test_more_partitions_than_a_request_can_mean_close_the_connection(
    broker: RunningBroker, wire: Wire
) -> None:
    from headrace.protocol.produce import MAX_PARTITIONS

    many = tuple((at, b"") for at in range(2 * MAX_PARTITIONS + 1))
    wire.send(request(*many))

    assert wire.is_closed()


def test_the_slow_way_begins_where_the_limits_say() -> None:
    assert produce_handler.MAX_AT_ONCE_PARTITIONS <= 64
    assert batch_checks.MAX_PLAIN_BYTES <= produce_handler.MAX_AT_ONCE_BYTES
