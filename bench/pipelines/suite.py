"""One run of the benchmark: servers up, topics filled, contests held, memory watched."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bench.driver import Driver, MeasuredBroker
from bench.pipelines.contests import (
    Contest,
    Contestant,
    ContestResults,
    run_contests,
    total_passes,
)
from bench.pipelines.databases import TITLES, Database, running_database
from bench.pipelines.jobs import Jobs
from bench.pipelines.memory import Memory, measure_memory
from bench.pipelines.metering import Pass
from bench.pipelines.plan import (
    ARCHIVE,
    MEMORY,
    PARTITIONS,
    PipelinePlan,
    make_contests,
    narrowed,
    topic_name,
    topics_of,
)
from bench.pipelines.rows import RowSet
from bench.pipelines.session import close_bench_session, open_bench_session
from tools.databases import DatabaseServerError


class Teller:
    """Who is told how the run goes. This one says nothing."""

    def say(self, line: str) -> None:
        """Something happened."""

    def is_stop_asked(self) -> bool:
        """Whether the run is to end before its time."""
        return False

    def expect(self, passes: int) -> None:
        """So many passes will come."""

    def begin(self, what: str) -> None:
        """A pass, or whatever else takes its time, begins. May raise, to end the run here."""

    def end(self, what: str, measured: Pass | None) -> None:
        """A pass has ended; warm-ups have no figures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteResult:
    """All that was measured."""

    contests: list[Contest]
    results: ContestResults
    memory: Memory | None
    brokers: tuple[str, ...]


def run_suite(
    plan: PipelinePlan,
    drivers: Sequence[Driver],
    place: Path,
    teller: Teller,
    only: Sequence[str] = (),
) -> SuiteResult:
    """Run everything in the empty directory `place`; what it needs is stopped at the end."""
    plan = narrowed(plan, only)
    brokers = tuple(driver.name for driver in drivers)
    with ExitStack() as stack:
        running = {
            driver.name: stack.enter_context(_running(driver, place / driver.name, teller))
            for driver in drivers
        }
        teller.begin(f"encoding {plan.set_rows:,} rows")
        row_set = RowSet(plan.set_rows)
        contests, results = list[Contest](), ContestResults()
        if not only or set(only) != {MEMORY}:
            contests, results = _contests(plan, running, row_set, place, teller, only)
        memory = None
        if plan.memory_rows:
            memory = _memory(plan, running[brokers[0]], row_set, place, teller)
    return SuiteResult(contests=contests, results=results, memory=memory, brokers=brokers)


@contextlib.contextmanager
def _running(driver: Driver, place: Path, teller: Teller) -> Iterator[MeasuredBroker]:
    teller.begin(f"starting {driver.name}")
    driver.prepare(place / "prepare")
    # Kafka's meaning of acks; nothing is produced while anybody is measured.
    with driver.running(place / "broker", is_durable=False) as broker:
        yield broker


def _contests(
    plan: PipelinePlan,
    brokers: dict[str, MeasuredBroker],
    row_set: RowSet,
    place: Path,
    teller: Teller,
    only: Sequence[str],
) -> tuple[list[Contest], ContestResults]:
    for name, broker in brokers.items():
        for rows, partitions in topics_of(plan):
            topic = topic_name(rows, partitions)
            teller.begin(f"filling {topic} on {name}")
            _fill(broker, row_set, topic, partitions, rows, place)
    with ExitStack() as stack:
        databases = _databases(plan, stack, place, teller)
        teller.begin("starting Spark")
        spark = open_bench_session(place / "spark.log")
        stack.callback(close_bench_session, spark)
        jobs = Jobs(
            spark=spark,
            brokers=brokers,
            databases=databases,
            scratch=place,
            is_stop_asked=teller.is_stop_asked,
        )
        lake = place / "source" / "lake"
        contests = make_contests(plan, jobs, row_set, tuple(brokers), lake)
        contests = [contest for contest in contests if not only or contest.key in only]
        if any(contest.key == ARCHIVE for contest in contests):
            teller.begin("archiving the rows that the copy reads")
            expected = row_set.expected(plan.archive_rows)
            topic = topic_name(plan.archive_rows, PARTITIONS)
            lake.parent.mkdir()
            jobs.archive_to(lake, next(iter(brokers)), topic, expected)
        teller.expect(total_passes(contests, warm_ups=plan.warm_ups, rounds=plan.rounds))
        results = run_contests(
            contests, warm_ups=plan.warm_ups, rounds=plan.rounds, say=_saying(teller)
        )
    return contests, results


def _saying(teller: Teller) -> Callable[[Contest, Contestant, Pass | None, bool], None]:
    def say(contest: Contest, contestant: Contestant, measured: Pass | None, is_over: bool) -> None:
        what = f"{contest.key}: {contestant.title}"
        if is_over:
            teller.end(what, measured)
        else:
            teller.begin(what)

    return say


def _databases(
    plan: PipelinePlan, stack: ExitStack, place: Path, teller: Teller
) -> dict[str, Database]:
    found = {}
    for name in plan.databases:
        teller.begin(f"starting {TITLES[name]}")
        try:
            found[name] = stack.enter_context(running_database(name, place))
        except DatabaseServerError as error:
            teller.say(f"{TITLES[name]} is left out: {error}")
    return found


def _memory(
    plan: PipelinePlan, broker: MeasuredBroker, row_set: RowSet, place: Path, teller: Teller
) -> Memory:
    topic = topic_name(plan.memory_rows, PARTITIONS)
    teller.begin(f"filling {topic}")
    _fill(broker, row_set, topic, PARTITIONS, plan.memory_rows, place)
    expected = row_set.expected(plan.memory_rows)
    bootstrap = f"127.0.0.1:{broker.port}"
    return measure_memory(bootstrap, topic, expected, place / "memory", teller.begin)


def _fill(
    broker: MeasuredBroker, row_set: RowSet, topic: str, partitions: int, rows: int, place: Path
) -> None:
    row_set.fill(broker.port, topic, partitions=partitions, rows=rows, scratch=place)
