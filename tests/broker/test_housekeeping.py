"""What is done between requests, by which clock."""

import asyncio
import time
from types import SimpleNamespace
from typing import Any

import pytest

from headrace.broker.clock import Clock
from headrace.broker.housekeeping import Housekeeping
from headrace.broker.state import Broker
from headrace.settings.broker_settings import BrokerSettings

HOUR_SECONDS = 3600


class Log:
    """It has a message that is not synced."""

    config = SimpleNamespace(flush_ms=60_000)
    recovery_point = 0
    log_end_offset = 1


class Stage:
    """A service of which housekeeping sees what it needs, and one log."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.synced: list[Any] = []
        self.swept_ms: list[int] = []
        self.log = Log()
        broker = SimpleNamespace(
            settings=BrokerSettings.load(),
            clock=self.clock,
            now_ms=Broker.now_ms,
            topics=SimpleNamespace(open_some=lambda: None),
        )
        service = SimpleNamespace(
            broker=broker,
            sync=SimpleNamespace(wait=lambda log, done: self.synced.append(log)),
            sweep_idle=lambda now_ms, quiet_ms: self.swept_ms.append(now_ms),
        )
        logs = SimpleNamespace(loaded=lambda: [self.log])
        self.housekeeping: Any = Housekeeping(service, logs)  # type: ignore[arg-type]


async def call(job: Any) -> None:
    outcome = job()
    if outcome is not None:
        await outcome


@pytest.mark.parametrize("jump_seconds", [-HOUR_SECONDS, HOUR_SECONDS])
def test_a_wall_clock_that_jumps_moves_no_flush(
    monkeypatch: pytest.MonkeyPatch, jump_seconds: int
) -> None:
    async def run() -> list[int]:
        stage = Stage()
        counts = []
        real_time = time.time
        await call(stage.housekeeping._flush_due)
        monkeypatch.setattr(time, "time", lambda: real_time() + jump_seconds)
        await call(stage.housekeeping._flush_due)
        counts.append(len(stage.synced))
        stage.clock.advance(60_000)
        await call(stage.housekeeping._flush_due)
        counts.append(len(stage.synced))
        return counts

    assert asyncio.run(run()) == [0, 1]


def test_idle_connections_are_judged_by_the_steady_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        stage = Stage()
        before_ms = stage.clock.steady_ms()
        real_time = time.time
        monkeypatch.setattr(time, "time", lambda: real_time() + HOUR_SECONDS)

        await call(stage.housekeeping._sweep)

        assert before_ms <= stage.swept_ms[0] <= stage.clock.steady_ms()
        assert stage.clock.settled_ms == stage.swept_ms[0]

    asyncio.run(run())
