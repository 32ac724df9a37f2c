import asyncio

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
