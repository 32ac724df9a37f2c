"""Runs the workloads: rounds, brokers in turn, a warm-up before every measurement."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.driver import Driver, MeasuredBroker, fresh
from bench.report import Results, number
from bench.stage import Sample, Stage
from bench.topics import admin_of
from bench.workloads import Workload
from headrace.client.admin import Admin

_GB = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How much is measured, and how long."""

    rounds: int
    seconds: float
    warm_up_seconds: float  # of each workload
    jit_warm_up_seconds: float  # of all together, for a broker that has a JIT
    backlog_bytes: int
    backlog_messages: int
    disk_bytes: int  # free space the run asks for; its own peak is about half of that
    touched_bytes: int


FULL = Plan(
    rounds=5,
    seconds=4,
    warm_up_seconds=2,
    jit_warm_up_seconds=60,
    backlog_bytes=_GB,
    backlog_messages=50_000_000,
    disk_bytes=20 * _GB,
    touched_bytes=8 * _GB,
)
QUICK = Plan(
    rounds=2,
    seconds=1.5,
    warm_up_seconds=0.5,
    jit_warm_up_seconds=10,
    backlog_bytes=_GB // 2,
    backlog_messages=50_000_000,
    disk_bytes=8 * _GB,
    touched_bytes=_GB,
)
_WARM_UP_BACKLOG_BYTES = 50_000_000
_WARM_UP_BACKLOG_MESSAGES = 500_000

Say = Callable[[str], None]


def run_rounds(
    drivers: Sequence[Driver],
    workloads: Sequence[Workload],
    plan: Plan,
    directory: Path,
    say: Say,
    *,
    is_side_by_side: bool = False,
) -> Results:
    """Measure every workload on every broker `plan.rounds` times, in turn.

    Side by side, the brokers of a round run together and take turns at each workload: what the
    machine is doing changes by the minute, and such a pair of samples is seconds apart.
    """
    results = Results()
    for driver in drivers:
        with fresh(directory / f"{driver.name}-prepare") as place:
            driver.prepare(place)
    for number_of_round in range(plan.rounds):
        # Whatever drifts over a run must not always hit the same broker.
        order = drivers if number_of_round % 2 == 0 else list(reversed(drivers))
        for is_durable in (False, True):
            chosen = [w for w in workloads if w.is_durable == is_durable]
            for together in [order] if is_side_by_side else [[driver] for driver in order]:
                if chosen:
                    names = " and ".join(driver.name for driver in together)
                    say(f"round {number_of_round + 1} of {plan.rounds}, {names}")
                    _measure(together, chosen, plan, directory, results, say)
    return results


def _measure(
    drivers: Sequence[Driver],
    workloads: Sequence[Workload],
    plan: Plan,
    directory: Path,
    results: Results,
    say: Say,
) -> None:
    """Let brokers that run together take turns at each workload."""
    with ExitStack() as stack:
        stages = [
            stack.enter_context(_ready_stage(driver, workloads, plan, directory))
            for driver in drivers
        ]
        for workload in workloads:
            for stage in stages:
                samples = workload.run(stage)
                results.add(stage.broker.name, samples)
                _say_samples(say, workload, samples, stage.broker.name if stages[1:] else "")
        for broker in (stage.broker for stage in stages):
            if not workloads[0].is_durable:  # once a round is enough
                ready = Sample("ready", broker.ready_seconds)
                results.add(broker.name, [ready, Sample("rss", broker.rss_bytes() / 1e6)])


@contextmanager
def _ready_stage(
    driver: Driver, workloads: Sequence[Workload], plan: Plan, directory: Path
) -> Iterator[Stage]:
    """A fresh broker that has run the workloads unmeasured."""
    with (
        fresh(directory / driver.name) as place,
        driver.running(place / "broker", is_durable=workloads[0].is_durable) as broker,
    ):
        admin = admin_of(broker.port)
        warm_up = _stage(broker, admin, place, plan, is_warm_up=True)
        _warm_up(warm_up, workloads, plan.jit_warm_up_seconds if driver.has_jit else 0)
        yield _stage(broker, admin, place, plan, is_warm_up=False)


def _warm_up(stage: Stage, workloads: Sequence[Workload], at_least_seconds: float) -> None:
    """Run every workload unmeasured, over and over for `at_least_seconds`."""
    chosen = [workload for workload in workloads if workload.needs_warm_up] or workloads
    deadline = time.monotonic() + at_least_seconds
    while True:
        for workload in chosen:
            workload.run(stage)
        if time.monotonic() >= deadline:
            break
    stage.settle()


def _stage(
    broker: MeasuredBroker, admin: Admin, place: Path, plan: Plan, *, is_warm_up: bool
) -> Stage:
    return Stage(
        broker=broker,
        admin=admin,
        scratch=place,
        seconds=plan.warm_up_seconds if is_warm_up else plan.seconds,
        backlog_bytes=_WARM_UP_BACKLOG_BYTES if is_warm_up else plan.backlog_bytes,
        backlog_messages=_WARM_UP_BACKLOG_MESSAGES if is_warm_up else plan.backlog_messages,
        is_warm_up=is_warm_up,
    )


def _say_samples(say: Say, workload: Workload, samples: Sequence[Sample], broker: str) -> None:
    values = {sample.row: sample.value for sample in samples}
    for row in workload.rows:
        if row.key in values:
            whose = f" ({broker})" if broker else ""
            say(f"  {row.title}: {number(values[row.key])} {row.unit}{whose}")
