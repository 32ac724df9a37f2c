import asyncio
from collections.abc import Callable

import pytest

from headrace.broker.loop_lag import LoopLag
from headrace.metrics import Gauge, Histogram


class ALoop(asyncio.AbstractEventLoop):
    """A loop whose clock the test holds."""

    def __init__(self) -> None:
        self.now = 100.0
        self.timers: list[tuple[float, Callable[[], None]]] = []

    def time(self) -> float:
        return self.now

    def call_later(self, delay, callback, *args, context=None):  # type: ignore[no-untyped-def]
        self.timers.append((self.now + delay, callback))
        return asyncio.TimerHandle(self.now + delay, callback, args, self)

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        self.timers.clear()

    def get_debug(self) -> bool:
        return False

    def fire(self, late_seconds: float = 0.0) -> None:
        when, callback = self.timers.pop()
        self.now = when + late_seconds
        callback()

    def idle(self, seconds: float) -> None:
        until = self.now + seconds
        while self.now < until:
            self.fire()


class Meter:
    """A lag that is measured on a loop of the test's."""

    def __init__(self) -> None:
        self.lags = Histogram((0.001, 0.05, 0.5))
        self.worst = Gauge()
        self.loop = ALoop()
        self.lag = LoopLag(self.lags, self.worst, self.loop, self.loop.time)
        self.lag.start()


@pytest.fixture
def meter() -> Meter:
    return Meter()


def test_each_tick_counts_in_the_bucket_of_its_lag(meter: Meter) -> None:
    for late in (0.0, 0.02, 0.3, 0.0, 7.0):
        meter.loop.fire(late)

    assert meter.lags.bucket_counts == [2, 1, 1, 1]
    assert meter.lags.total == pytest.approx(7.32)


def test_a_stall_of_some_milliseconds_is_seen_whenever_it_happens(meter: Meter) -> None:
    """A timer a second would see one stall in a hundred."""
    began = meter.loop.now
    meter.loop.idle(1.0)

    assert meter.lags.count >= 49 * (meter.loop.now - began)


def test_the_worst_of_the_last_minute_is_told_and_then_forgotten(meter: Meter) -> None:
    meter.loop.fire(late_seconds=0.25)
    meter.loop.idle(20)
    meter.loop.fire(late_seconds=0.1)
    assert meter.worst.value == pytest.approx(0.25)

    meter.loop.idle(45)
    assert meter.worst.value == pytest.approx(0.1)

    meter.loop.idle(65)
    assert meter.worst.value == pytest.approx(0.0)


def test_after_the_stop_nothing_ticks(meter: Meter) -> None:
    meter.lag.stop()

    assert meter.loop.timers == []
