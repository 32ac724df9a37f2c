import asyncio
from collections.abc import Callable
from time import perf_counter

import pytest
import uvloop
from tests.broker.turn_counter import turns_during

from headrace.broker import turns
from headrace.broker.turns import SLICE_SECONDS, Turn, in_slices

NewLoop = Callable[[], asyncio.AbstractEventLoop]


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def new_loop(request: pytest.FixtureRequest) -> NewLoop:
    return request.param  # type: ignore[no-any-return]


class Time:
    """A clock that the work itself moves."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seconds = 1.0
        monkeypatch.setattr(turns, "perf_counter", lambda: self.seconds)


async def count_turns(until: asyncio.Task[None], time: Time) -> list[float]:
    """What each turn of the loop took, by the clock that the work moves."""
    spent = []
    while not until.done():
        began = time.seconds
        await asyncio.sleep(0)
        spent.append(time.seconds - began)
    return spent


async def work(time: Time, elements: int, seconds_each: float) -> None:
    turn = Turn()
    for _ in range(elements):
        time.seconds += seconds_each
        await turn.breathe()


def test_work_that_fits_into_a_turn_never_waits(
    new_loop: NewLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    time = Time(monkeypatch)

    async def run() -> None:
        coroutine = work(time, 100, SLICE_SECONDS / 200)
        with pytest.raises(StopIteration):
            coroutine.send(None)

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(run())


def test_no_turn_holds_much_more_than_the_budget(
    new_loop: NewLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    time = Time(monkeypatch)
    each = SLICE_SECONDS / 10

    async def run() -> list[float]:
        return await count_turns(asyncio.create_task(work(time, 1_000, each)), time)

    with asyncio.Runner(loop_factory=new_loop) as runner:
        spent = runner.run(run())
    assert sum(spent) == pytest.approx(1_000 * each)
    assert max(spent) < 1.5 * SLICE_SECONDS


def test_forty_long_requests_share_one_budget(
    new_loop: NewLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    time = Time(monkeypatch)
    each = SLICE_SECONDS / 100

    async def run() -> list[float]:
        async def all_of_them() -> None:
            await asyncio.gather(*(work(time, 300, each) for _ in range(40)))

        return await count_turns(asyncio.create_task(all_of_them()), time)

    with asyncio.Runner(loop_factory=new_loop) as runner:
        spent = runner.run(run())
    assert sum(spent) == pytest.approx(40 * 300 * each)
    # Each may finish the element it began: 40 more hundredths.
    assert max(spent) < 2 * SLICE_SECONDS


def test_sockets_are_read_between_two_slices(new_loop: NewLoop) -> None:
    async def run() -> None:
        server_got = asyncio.Event()

        async def on_connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readexactly(1)
            server_got.set()
            writer.close()

        server = await asyncio.start_server(on_connect, "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            turn = Turn()
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"x")
            # Never idle: only breathing lets the bytes through.
            give_up_at = perf_counter() + 60
            while not server_got.is_set():
                assert perf_counter() < give_up_at
                await turn.breathe()
            writer.close()
            await writer.wait_closed()

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(run())


def test_a_cancelled_request_leaves_its_place_to_the_next(
    new_loop: NewLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    time = Time(monkeypatch)

    async def run() -> None:
        first = asyncio.create_task(work(time, 5, SLICE_SECONDS))
        second = asyncio.create_task(work(time, 5, SLICE_SECONDS))
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.wait_for(second, 60)
        with pytest.raises(asyncio.CancelledError):
            await first

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(run())


def test_all_items_come_in_order() -> None:
    async def collect() -> list[int]:
        return [item async for item in in_slices(range(100))]

    assert asyncio.run(collect()) == list(range(100))


def test_others_have_turns_in_between(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        async for _ in in_slices(range(50)):
            pass

    assert turns_during(work(), monkeypatch) >= 24
