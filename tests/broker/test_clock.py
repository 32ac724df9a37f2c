import asyncio
import socket
import time
from collections.abc import Callable

import pytest
import uvloop

from headrace.broker.clock import Clock


def test_both_clocks_start_together() -> None:
    clock = Clock()

    assert abs(clock.now_ms() - clock.steady_ms()) < 1000


def test_advance_moves_both_and_calls_back_in_order_of_time() -> None:
    async def run() -> list[str]:
        clock = Clock()
        called: list[str] = []
        start_ms = clock.steady_ms()
        clock.call_at(start_ms + 20_000, lambda: called.append("second"))
        clock.call_at(start_ms + 10_000, lambda: called.append("first"))
        clock.call_at(start_ms + 90_000, lambda: called.append("not yet"))
        before_ms = clock.now_ms()

        clock.advance(30_000)

        assert clock.now_ms() >= before_ms + 30_000
        assert clock.steady_ms() >= start_ms + 30_000
        clock.stop()
        return called

    assert asyncio.run(run()) == ["first", "second"]


def test_time_passes_by_itself() -> None:
    async def run() -> None:
        clock = Clock()
        later = asyncio.Event()
        clock.call_at(clock.steady_ms() + 30_000, lambda: None)
        clock.call_at(clock.steady_ms() + 1, later.set)
        await asyncio.wait_for(later.wait(), 120)
        clock.stop()

    asyncio.run(run())


def test_a_callback_may_ask_for_the_next_one() -> None:
    async def run() -> int:
        clock = Clock()
        times: list[int] = []

        def again() -> None:
            times.append(clock.steady_ms())
            clock.call_at(times[-1] + 1_000, again)

        clock.call_at(clock.steady_ms(), again)
        clock.advance(0)
        clock.advance(1_000)
        clock.stop()
        return len(times)

    assert asyncio.run(run()) == 2


def test_a_cancelled_timer_is_not_called() -> None:
    async def run() -> list[str]:
        clock = Clock()
        called: list[str] = []
        clock.call_at(clock.steady_ms() + 10, lambda: called.append("no")).cancel()
        clock.advance(1_000)
        return called

    assert asyncio.run(run()) == []


def test_a_stopped_clock_calls_nobody() -> None:
    async def run() -> list[str]:
        clock = Clock()
        called: list[str] = []
        clock.call_at(clock.steady_ms() + 10, lambda: called.append("no"))
        clock.stop()
        clock.advance(1_000)
        return called

    assert asyncio.run(run()) == []


NewLoop = Callable[[], asyncio.AbstractEventLoop]


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def new_loop(request: pytest.FixtureRequest) -> NewLoop:
    return request.param  # type: ignore[no-any-return]


class Member(asyncio.Protocol):
    """A session of 200 ms that whatever comes in prolongs to a minute."""

    def __init__(self, clock: Clock, expired: asyncio.Event) -> None:
        self._clock = clock
        self._expired = expired
        self.deadline_ms = 0

    def begin(self, ms: int) -> None:
        self.deadline_ms = self._clock.steady_ms() + ms
        self._clock.call_at(self.deadline_ms, self._on_time)

    def data_received(self, data: bytes) -> None:
        self.begin(60_000)

    def _on_time(self) -> None:
        if self.deadline_ms <= self._clock.settled_ms:
            self._expired.set()


class Culprit(asyncio.Protocol):
    """Holds the loop while it is read from, as a handler does that takes long."""

    def __init__(self, stall: Callable[[], None]) -> None:
        self._stall = stall

    def data_received(self, data: bytes) -> None:
        self._stall()


async def hold_the_loop(stall: Callable[[], None]) -> None:
    """Let `stall` run where libuv reads sockets: timers are what it looks at next."""
    ours, theirs = socket.socketpair()
    await asyncio.get_running_loop().create_connection(lambda: Culprit(stall), sock=ours)
    theirs.send(b"a question that takes long")
    theirs.close()


def test_a_stall_ends_no_session_whose_heartbeat_lies_in_the_socket(new_loop: NewLoop) -> None:
    async def run() -> tuple[bool, bool]:
        loop = asyncio.get_running_loop()
        clock = Clock()
        ends, members, expired = [], [], []
        for _ in range(2):
            ours, theirs = socket.socketpair()
            expired.append(asyncio.Event())
            member = Member(clock, expired[-1])
            await loop.create_connection(lambda member=member: member, sock=ours)
            members.append(member)
            ends.append(theirs)

        def stall() -> None:
            for member in members:
                member.begin(200)
            ends[0].send(b"heartbeat")
            time.sleep(0.4)  # the loop is held: both deadlines pass, nobody is read from

        await hold_the_loop(stall)
        await asyncio.wait_for(expired[1].wait(), 60)
        # Whatever was due then has been called.
        await clock.settle()
        clock.stop()
        for end in ends:
            end.close()
        return expired[0].is_set(), expired[1].is_set()

    with asyncio.Runner(loop_factory=new_loop) as runner:
        assert runner.run(run()) == (False, True)


def test_who_has_to_be_accepted_first_is_heard_too(new_loop: NewLoop) -> None:
    async def run() -> list[str]:
        clock = Clock()
        told: list[str] = []

        async def on_connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            told.append("connected")
            writer.close()

        server = await asyncio.start_server(on_connect, "127.0.0.1", 0)
        address = server.sockets[0].getsockname()
        fired = asyncio.Event()
        clients = []

        def fire() -> None:
            told.append("fired")
            fired.set()

        def stall() -> None:
            clock.call_at(clock.steady_ms() + 50, fire)
            clients.append(socket.create_connection(address))
            time.sleep(0.2)

        await hold_the_loop(stall)
        async with server:
            await asyncio.wait_for(fired.wait(), 60)
        clock.stop()
        clients[0].close()
        return told

    with asyncio.Runner(loop_factory=new_loop) as runner:
        assert runner.run(run()) == ["connected", "fired"]


def test_settling_says_by_which_time_all_was_read(new_loop: NewLoop) -> None:
    async def run() -> None:
        clock = Clock()
        before_ms = clock.steady_ms()
        as_of_ms = await clock.settle()
        assert before_ms <= as_of_ms <= clock.steady_ms()
        assert clock.settled_ms == as_of_ms

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(run())


def test_a_wall_clock_that_jumps_does_not_move_the_steady_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock()
    before_ms = clock.steady_ms()

    monkeypatch.setattr(time, "time", lambda: 4_000_000_000.0)

    assert clock.now_ms() == 4_000_000_000_000
    assert before_ms <= clock.steady_ms() < before_ms + 600_000
