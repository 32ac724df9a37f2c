"""How long the demo takes on this machine: as long as it took the last time, else an estimate.

The feed lasts as long as it was told to. The rest is work, and a sample of work tells how long that
takes here: how fast this machine is, and how busy.
"""

import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path

FILE_NAME = "last-run.json"
# All that is not over when the feed is (catching up, comparing, the picture, stopping), on two
# cores of the machine that the demo was made on, and how long the sample below takes there.
_REST_SECONDS = 50.0
_SAMPLE_SECONDS = 0.036
_SAMPLE_STEPS = 1_000_000
_SAMPLES = 5
# Two pipelines with small batches: more cores change little.
_CORES = 2


@dataclass(frozen=True, kw_only=True)
class Past:
    """A run that came to its end: what was asked for, and how long it took."""

    feed_seconds: float
    rate: float
    took_seconds: float


def expectation(feed_seconds: float, rate: float, directory: Path) -> str:
    """How long it will take, as a sentence says it."""
    past = _read(directory / FILE_NAME)
    if past is not None and (past.feed_seconds, past.rate) == (feed_seconds, rate):
        return f"the last time it took {_rounded(past.took_seconds)} on this machine"
    cores = min(_CORES, len(os.sched_getaffinity(0)))
    seconds = feed_seconds + _REST_SECONDS * _slowness() * _CORES / cores
    return f"this takes about {_rounded(seconds)} on this machine as it is now"


def note(past: Past, directory: Path) -> None:
    """Keep how long it took, for the next time."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / FILE_NAME).write_text(json.dumps(asdict(past)) + "\n", "utf-8")


def _read(file: Path) -> Past | None:
    try:
        return Past(**json.loads(file.read_text("utf-8")))
    except (OSError, ValueError, TypeError):  # none yet, or not one of ours
        return None


def _slowness() -> float:
    """How often longer the same work takes here and now than where the demo was made."""
    seconds = []
    for _ in range(_SAMPLES):
        started = time.perf_counter()
        for _ in range(_SAMPLE_STEPS):
            pass
        seconds.append(time.perf_counter() - started)
    return sum(seconds) / _SAMPLES / _SAMPLE_SECONDS


def _rounded(seconds: float) -> str:
    """To half a minute from a minute on: it is no promise."""
    if seconds < 60:
        return f"{round(seconds, -1):.0f} s"
    halves = round(seconds / 30)
    return f"{halves / 2:g} minute{'s' if halves != 2 else ''}"
