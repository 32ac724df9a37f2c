"""What is done between requests, by which clock."""

import asyncio
import time
from types import SimpleNamespace
from typing import Any

import pytest

from headrace.broker.clock import Clock
from headrace.broker.housekeeping import Housekeeping
from headrace.broker.state import BrokerState
from headrace.settings.broker_settings import BrokerSettings

HOUR_SECONDS = 3600


class Log:
    """It has a message that is not synced."""

    config = SimpleNamespace(flush_ms=60_000)
    recovery_point = 0
    log_end_offset = 1
    has_unsynced_segments = False
    sync_failure = None


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
            now_ms=BrokerState.now_ms,
            topics=SimpleNamespace(open_some=lambda: asyncio.sleep(0)),
        )
        service = SimpleNamespace(
            broker=broker,
            sync=SimpleNamespace(wait=lambda log, done: self.synced.append(log)),
            sweep_idle=lambda now_ms, quiet_ms: self.swept_ms.append(now_ms),
        )
        logs = SimpleNamespace(loaded=lambda: [self.log], is_current=lambda log: True)
        self.housekeeping: Any = Housekeeping(service, logs)  # type: ignore[arg-type]


@pytest.mark.parametrize("jump_seconds", [-HOUR_SECONDS, HOUR_SECONDS])
def test_a_wall_clock_that_jumps_moves_no_flush(
    monkeypatch: pytest.MonkeyPatch, jump_seconds: int
) -> None:
    async def run() -> list[int]:
        stage = Stage()
        counts = []
        real_time = time.time
        await stage.housekeeping._flush_due()
        monkeypatch.setattr(time, "time", lambda: real_time() + jump_seconds)
        await stage.housekeeping._flush_due()
        counts.append(len(stage.synced))
        stage.clock.advance(60_000)
        await stage.housekeeping._flush_due()
        counts.append(len(stage.synced))
        return counts

    assert asyncio.run(run()) == [0, 1]


def test_idle_connections_are_judged_by_the_steady_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        stage = Stage()
        before_ms = stage.clock.steady_ms()
        real_time = time.time
        monkeypatch.setattr(time, "time", lambda: real_time() + HOUR_SECONDS)

        await stage.housekeeping._sweep()

        assert before_ms <= stage.swept_ms[0] <= stage.clock.steady_ms()
        assert stage.clock.settled_ms == stage.swept_ms[0]

    asyncio.run(run())


@pytest.mark.parametrize(
    ("has_unsynced_segments", "failure", "syncs"),
    [(True, None, 1), (False, None, 0), (True, OSError(5, "Input/output error"), 0)],
)
def test_segments_that_were_rolled_are_synced_without_being_asked_unless_a_sync_failed(
    has_unsynced_segments: bool, failure: OSError | None, syncs: int
) -> None:
    async def run() -> int:
        stage = Stage()
        stage.log.has_unsynced_segments = has_unsynced_segments
        stage.log.sync_failure = failure
        await stage.housekeeping._flush_due()
        return len(stage.synced)

    assert asyncio.run(run()) == syncs
