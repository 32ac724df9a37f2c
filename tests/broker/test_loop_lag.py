import asyncio
from collections.abc import Callable

import pytest

from headrace.broker.loop_lag import LoopLag
from headrace.metrics import Gauge


class ALoop(asyncio.AbstractEventLoop):
    """A loop whose clock the test holds."""

    def __init__(self) -> None:
        self.now = 100.0
        self.timers: list[tuple[float, Callable[[], None]]] = []

    def time(self) -> float:
        return self.now

    def call_at(self, when, callback, *args, context=None):  # type: ignore[no-untyped-def]
        self.timers.append((when, callback))
        return asyncio.TimerHandle(when, callback, args, self)

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        self.timers.clear()

    def get_debug(self) -> bool:
        return False

    def fire(self, late_seconds: float) -> None:
        when, callback = self.timers.pop()
        self.now = when + late_seconds
        callback()


def test_the_gauge_shows_how_late_the_last_tick_was() -> None:
    gauge, loop = Gauge(), ALoop()
    LoopLag(gauge, loop).start()

    loop.fire(late_seconds=0.25)
    assert gauge.value == pytest.approx(0.25)

    loop.fire(late_seconds=0.0)
    assert gauge.value == pytest.approx(0.0)


def test_after_the_stop_nothing_ticks() -> None:
    loop = ALoop()
    lag = LoopLag(Gauge(), loop)
    lag.start()

    lag.stop()

    assert loop.timers == []
