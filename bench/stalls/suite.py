"""Runs one load on one broker beside an innocent client, and says what both got."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.build import build_library
from bench.driver import Driver, fresh
from bench.drivers.headrace import HeadraceDriver
from bench.drivers.kafka import KafkaDriver
from bench.report import KAFKA, SUBJECT
from bench.stalls.innocent import TOPIC, InnocentWaits, innocent_client
from bench.stalls.load import StallLoad
from bench.stalls.offenders import CulpritAccount
from bench.stalls.testbed import Testbed

# What is put off (deletion, compaction) shows only after the culprit has its answer.
_LINGER_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One load on one broker."""

    load: str
    engine: str
    waiting: InnocentWaits
    outcome: CulpritAccount
    peak_bytes: int | None  # None: the broker has ended

    def to_json(self) -> dict[str, Any]:
        """Everything, nothing rounded."""
        kept = {"requests", "answered", "closed", "unanswered", "sent_bytes", "received_bytes"}
        kept |= {"slowest_seconds", "notes", "facts"}
        return {
            "load": self.load,
            "engine": self.engine,
            "innocent": asdict(self.waiting) | {"is_evicted": self.waiting.is_evicted},
            "peak_rss_bytes": self.peak_bytes,
            "culprit": {
                "sentence": self.outcome.sentence(),
                "answers": dict(self.outcome.answers),
                **{name: getattr(self.outcome, name) for name in sorted(kept)},
            },
        }


def driver_of(engine: str, load: StallLoad) -> Driver:
    """Return what starts that broker with the settings of the load."""
    if engine == KAFKA:
        return KafkaDriver(load.settings)
    return HeadraceDriver(SUBJECT, settings=load.settings)


def measure(
    load: StallLoad,
    driver: Driver,
    directory: Path,
    *,
    scale: float,
    warm_up_seconds: float,
    say: Callable[[str], None] = lambda text: None,
) -> Measured:
    """Start a fresh broker, make the load ready, then time the innocent client beside it."""
    # As they come: headrace syncs for acks=all, Kafka does not, but where syncs are the load.
    is_durable = driver.name != KAFKA or load.slow_sync_ms > 0
    testbed = Testbed(driver, directory, scale=scale, is_durable=is_durable)
    with fresh(directory), _slowed_syncs(load.slow_sync_ms), testbed.open():
        say("making it ready")
        attack = load.prepare(testbed)
        testbed.create_topic(TOPIC)
        with innocent_client(testbed.port, testbed.scratch) as innocent:
            say("warming up")
            time.sleep(warm_up_seconds)
            say("under load")
            outcome = CulpritAccount()
            testbed.reset_peak()
            innocent.begin()
            attack(outcome)
            time.sleep(_LINGER_SECONDS)
            waiting = innocent.finish()
        peak_bytes = testbed.peak_bytes()
        outcome.read_answers()
        say("stopping")
    return Measured(
        load=load.name,
        engine=driver.name,
        waiting=waiting,
        outcome=outcome,
        peak_bytes=peak_bytes,
    )


@contextmanager
def _slowed_syncs(more_ms: int) -> Iterator[None]:
    """Give the processes that are started inside a disk whose syncs take longer."""
    if not more_ms:
        yield
        return
    names = {"LD_PRELOAD": str(build_library("slow_disk")), "SLOW_DISK_MS": str(more_ms)}
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(names)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value
