import asyncio
from pathlib import Path

import pytest

from headrace.broker.committer import Committer, Failures
from headrace.broker.receive_buffer import Block
from headrace.broker.waiting_fetches import WaitingFetches
from headrace.log.errors import StorageWriteError
from headrace.metrics import Metrics


class FakeLog:
    topic, partition = "t", 0

    def __init__(self, error: StorageWriteError | None = None) -> None:
        self.commits = 0
        self.error = error

    def commit(self, now_ms: int) -> int:
        self.commits += 1
        if self.error is not None:
            raise self.error
        return 1


class Request:
    def __init__(self) -> None:
        self.failures: list[Failures] = []

    def on_commit(self, failures: Failures) -> None:
        self.failures.append(failures)


class Reader:
    def __init__(self) -> None:
        self.bytes: list[int] = []

    def on_append(self, log: object, byte_count: int) -> None:
        self.bytes.append(byte_count)


@pytest.fixture
def loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


def a_committer(
    loop: asyncio.AbstractEventLoop, waiting: WaitingFetches | None = None
) -> Committer:
    return Committer(loop, lambda: 1000, waiting or WaitingFetches(), Metrics())


def end_turn(loop: asyncio.AbstractEventLoop) -> None:
    loop.call_soon(loop.stop)
    loop.run_forever()


def test_all_requests_of_a_turn_share_one_commit(loop: asyncio.AbstractEventLoop) -> None:
    committer, log = a_committer(loop), FakeLog()
    requests = [Request(), Request(), Request()]
    for request in requests:
        committer.stage(log, 100, Block(0))
        committer.add(request)

    end_turn(loop)

    assert log.commits == 1
    assert [request.failures for request in requests] == [[{}], [{}], [{}]]


def test_a_log_that_fails_is_named_and_the_others_are_committed(
    loop: asyncio.AbstractEventLoop,
) -> None:
    error = StorageWriteError(Path("t-0"), OSError(28, "No space left on device"))
    committer, full, fine, request = a_committer(loop), FakeLog(error), FakeLog(), Request()
    committer.stage(full, 1, Block(0))
    committer.stage(fine, 1, Block(0))
    committer.add(request)

    end_turn(loop)

    assert fine.commits == 1
    assert request.failures == [{full: error}]


def test_readers_hear_of_committed_bytes_only(loop: asyncio.AbstractEventLoop) -> None:
    waiting, reader = WaitingFetches(), Reader()
    error = StorageWriteError(Path("t-0"), OSError(28, "No space left on device"))
    full, fine = FakeLog(error), FakeLog()
    waiting.add(reader, [full, fine])
    committer = a_committer(loop, waiting)
    committer.stage(full, 7, Block(0))
    committer.stage(fine, 100, Block(0))
    committer.stage(fine, 20, Block(0))
    committer.add(Request())

    end_turn(loop)

    assert reader.bytes == [120]


def test_a_flush_before_the_turn_ends_leaves_nothing_for_the_end(
    loop: asyncio.AbstractEventLoop,
) -> None:
    committer, log, request = a_committer(loop), FakeLog(), Request()
    committer.stage(log, 1, Block(0))
    committer.add(request)

    committer.flush()
    end_turn(loop)

    assert (log.commits, len(request.failures)) == (1, 1)


def test_what_is_staged_after_a_flush_in_the_same_turn_is_committed_too(
    loop: asyncio.AbstractEventLoop,
) -> None:
    committer, log, request = a_committer(loop), FakeLog(), Request()
    committer.add(Request())
    committer.flush()
    committer.stage(log, 1, Block(0))
    committer.add(request)

    end_turn(loop)

    assert (log.commits, request.failures) == (1, [{}])


def test_a_lone_request_is_committed_as_soon_as_it_is_read(
    loop: asyncio.AbstractEventLoop,
) -> None:
    committer, log, request = a_committer(loop), FakeLog(), Request()
    committer.stage(log, 1, Block(0))
    committer.add(request)

    committer.read_ends()

    assert (log.commits, request.failures) == (1, [{}])


def test_after_a_turn_with_several_requests_the_next_ones_wait_for_each_other(
    loop: asyncio.AbstractEventLoop,
) -> None:
    committer, log = a_committer(loop), FakeLog()
    for _ in range(2):
        committer.stage(log, 1, Block(0))
        committer.add(Request())
        committer.read_ends()
    end_turn(loop)
    commits = log.commits

    committer.stage(log, 1, Block(0))
    committer.add(Request())
    committer.read_ends()

    assert log.commits == commits
    end_turn(loop)
    assert log.commits == commits + 1


def test_borrowed_blocks_are_given_back_when_their_batches_are_written(
    loop: asyncio.AbstractEventLoop,
) -> None:
    committer, block = a_committer(loop), Block(10)
    committer.stage(FakeLog(), 10, block)
    committer.stage(FakeLog(StorageWriteError(Path("p"), OSError(28, "full"))), 10, block)
    loans = block.loans

    committer.flush()

    assert (loans, block.loans) == (2, 0)


def test_what_is_staged_is_written_even_when_its_request_never_came_to_wait(
    loop: asyncio.AbstractEventLoop,
) -> None:
    committer, log = a_committer(loop), FakeLog()
    committer.stage(log, 10, Block(0))

    committer.flush()

    assert log.commits == 1
