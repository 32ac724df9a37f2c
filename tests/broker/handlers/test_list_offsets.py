import asyncio
import inspect
import itertools
import os
import threading
from typing import Any

import pytest
from kio.schema.errors import ErrorCode
from kio.schema.list_offsets.v11.request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from tests.at_once import at_once
from tests.broker.handlers.conftest import VERSIONS

from headrace.broker import turns
from headrace.broker.handlers import list_offsets
from headrace.broker.handlers.throttle import NO_THROTTLE
from headrace.broker.state import BrokerState, RequestContext

LIST_OFFSETS = 2
T0 = 1_699_999_000_000


@pytest.fixture(autouse=True)
def _topic(broker: BrokerState, append: Any) -> None:
    at_once(broker.topics.create("t", 2, {"retention.ms": "-1"}))
    append("t", 0, T0, T0 + 500, T0 + 200, T0 + 900, T0 + 600)


def a_request(*rows: tuple[int, int], topic: str = "t", epoch: int = -1) -> ListOffsetsRequest:
    return ListOffsetsRequest(
        replica_id=-1,
        isolation_level=0,
        topics=(
            ListOffsetsTopic(
                name=topic,
                partitions=tuple(
                    ListOffsetsPartition(
                        partition_index=index, current_leader_epoch=epoch, timestamp=timestamp
                    )
                    for index, timestamp in rows
                ),
            ),
        ),
        timeout=NO_THROTTLE,
    )


def the_row(answer: Any) -> Any:
    return answer.topics[0].partitions[0]


@pytest.mark.parametrize("version", VERSIONS["list_offsets"])
def test_every_version_finds_both_ends(version: int, broker: BrokerState, ask: Any) -> None:
    broker.topics.log("t", 0).delete_records(2)

    earliest = the_row(ask(LIST_OFFSETS, a_request((0, -2)), version))
    latest = the_row(ask(LIST_OFFSETS, a_request((0, -1)), version))

    assert (earliest.offset, earliest.timestamp, earliest.error_code) == (2, -1, ErrorCode.none)
    assert (latest.offset, latest.timestamp) == (5, -1)
    if version >= 4:
        assert (earliest.leader_epoch, latest.leader_epoch) == (0, 0)


@pytest.mark.parametrize(
    ("timestamp", "found"),
    [
        (0, (T0, 0)),
        (T0, (T0, 0)),
        (T0 + 1, (T0 + 500, 1)),
        (T0 + 501, (T0 + 900, 3)),
        (T0 + 901, (-1, -1)),
    ],
)
def test_a_time_finds_the_first_message_at_or_after_it(
    timestamp: int, found: tuple[int, int], ask: Any
) -> None:
    row = the_row(ask(LIST_OFFSETS, a_request((0, timestamp))))

    assert (row.timestamp, row.offset) == found
    assert row.error_code == ErrorCode.none


@pytest.mark.parametrize(
    ("special", "first_version", "found"),
    [(-3, 7, (T0 + 900, 3)), (-4, 8, (-1, 0)), (-5, 9, (-1, -1)), (-6, 11, (-1, -1))],
)
def test_special_timestamps_exist_from_their_version_on(
    special: int, first_version: int, found: tuple[int, int], ask: Any
) -> None:
    before = the_row(ask(LIST_OFFSETS, a_request((0, special)), first_version - 1))
    since = the_row(ask(LIST_OFFSETS, a_request((0, special)), first_version))

    assert before.error_code == ErrorCode.unsupported_version
    assert (before.timestamp, before.offset) == (-1, -1)
    assert since.error_code == ErrorCode.none
    assert (since.timestamp, since.offset) == found


def test_an_unknown_special_timestamp_is_unsupported(ask: Any) -> None:
    row = the_row(ask(LIST_OFFSETS, a_request((0, -7))))

    assert row.error_code == ErrorCode.unsupported_version


@pytest.mark.parametrize(("timestamp", "offset"), [(-1, 0), (-2, 0), (-3, -1), (5, -1)])
def test_an_empty_log_has_its_ends_at_0_and_nothing_in_between(
    timestamp: int, offset: int, ask: Any
) -> None:
    row = the_row(ask(LIST_OFFSETS, a_request((1, timestamp))))

    assert (row.error_code, row.timestamp, row.offset) == (ErrorCode.none, -1, offset)


@pytest.mark.parametrize(
    ("epoch", "error_code"),
    [(-1, ErrorCode.none), (0, ErrorCode.none), (1, ErrorCode.unknown_leader_epoch)],
)
def test_the_clients_idea_of_the_leader_epoch_is_checked(
    epoch: int, error_code: ErrorCode, ask: Any
) -> None:
    row = the_row(ask(LIST_OFFSETS, a_request((0, -1), epoch=epoch)))

    assert row.error_code == error_code


def test_an_old_leader_epoch_is_fenced(broker: BrokerState, ask: Any) -> None:
    broker.topics.log("t", 0).leader_epoch = 3

    row = the_row(ask(LIST_OFFSETS, a_request((0, -1), epoch=2)))

    assert row.error_code == ErrorCode.fenced_leader_epoch


@pytest.mark.parametrize(("topic", "partition"), [("t", 2), ("t", -1), ("nope", 0)])
def test_an_unknown_partition_is_an_error_of_its_own(topic: str, partition: int, ask: Any) -> None:
    row = the_row(ask(LIST_OFFSETS, a_request((partition, -1), topic=topic)))

    assert row.error_code == ErrorCode.unknown_topic_or_partition


def test_a_partition_asked_for_twice_is_an_invalid_request(ask: Any) -> None:
    answer = ask(LIST_OFFSETS, a_request((0, -1), (0, -2), (1, -1)))

    assert [row.error_code for row in answer.topics[0].partitions] == [
        ErrorCode.invalid_request,
        ErrorCode.invalid_request,
        ErrorCode.none,
    ]


def turns_during(answer: Any, loop: asyncio.Runner) -> tuple[Any, int]:
    """The answer, and how often others had the loop until it was there."""

    async def run() -> tuple[Any, int]:
        asked = asyncio.ensure_future(answer)
        turns = 0
        while not asked.done():
            await asyncio.sleep(0)
            turns += 1
        return asked.result(), turns

    return loop.run(run())


async def handled(request: ListOffsetsRequest, broker: BrokerState) -> Any:
    response = list_offsets.handle(request, broker, RequestContext(2, 11, "client", "127.0.0.1"))
    return await response if inspect.iscoroutine(response) else response


def test_no_batch_is_read_on_the_loop(
    broker: BrokerState, loop: asyncio.Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_read = threading.Event()
    pread = os.pread

    def slow_pread(*arguments: int) -> bytes:
        assert may_read.wait(60), "the loop waited for the disk"
        return pread(*arguments)

    async def run() -> Any:
        monkeypatch.setattr(os, "pread", slow_pread)
        asked = asyncio.ensure_future(handled(a_request((0, T0 + 501), (1, 0)), broker))
        await asyncio.sleep(0)
        may_read.set()
        return await asked

    found = [(row.timestamp, row.offset) for row in loop.run(run()).topics[0].partitions]

    assert found == [(T0 + 900, 3), (-1, -1)]


def test_a_hundred_thousand_questions_leave_the_loop_to_others(
    broker: BrokerState, loop: asyncio.Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    # By a clock on which looking at it takes ten microseconds: time does not come into this.
    now = itertools.count(1)
    monkeypatch.setattr(turns, "perf_counter", lambda: next(now) * 1e-5)
    request = a_request(*((index, -1) for index in range(100_000)))

    answer, seen = turns_during(handled(request, broker), loop)

    rows = answer.topics[0].partitions
    assert [row.offset for row in rows[:2]] == [5, 0]
    assert rows[-1].error_code == ErrorCode.unknown_topic_or_partition
    assert seen > 2 * 100_000 * 1e-5 / turns.SLICE_SECONDS


def test_files_that_vanish_are_an_error_of_their_partition(
    broker: BrokerState, loop: asyncio.Runner, append: Any
) -> None:
    append("t", 1, T0)
    log = broker.topics.log("t", 0)
    segment = log.segments[0]
    segment.file.close()
    segment.path.rename(segment.path.with_suffix(".away"))

    rows = loop.run(handled(a_request((0, T0), (1, T0)), broker)).topics[0].partitions

    segment.path.with_suffix(".away").rename(segment.path)
    assert [row.error_code for row in rows] == [ErrorCode.kafka_storage_error, ErrorCode.none]
    assert rows[1].offset == 0
