"""What is measured in a run: how many rows and rounds, which contests, which targets."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from bench.errors import BenchError
from bench.pipelines.contests import Contest, Contestant
from bench.pipelines.databases import MARIADB, POSTGRESQL, SQLITE, TITLES
from bench.pipelines.jobs import Jobs
from bench.pipelines.report import Target
from bench.pipelines.rows import Expected, RowSet

ARCHIVE, GROWTH, MEMORY = "archive", "growth", "memory"
HEADRACE, KAFKA = "headrace", "kafka"
FED_BY = {HEADRACE: "fed by headrace", KAFKA: "fed by Apache Kafka"}
PARTITIONS = 4  # of the contests; the growth has its own
GROWTH_PARTITIONS = (1, 4, 16)
# What issue 5 asks for.
OF_KAFKA, OF_COPY, UPSERTS_PER_S = 0.9, 0.7, 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelinePlan:
    """How much is measured. Rows are multiples of `set_rows`, which repeat."""

    set_rows: int
    archive_rows: int
    table_rows: int
    memory_rows: int  # 0: not measured
    warm_ups: int
    rounds: int
    databases: tuple[str, ...]
    growth: tuple[int, ...]
    disk_bytes: int  # free space the run asks for


_GB = 1_000_000_000
FULL = PipelinePlan(
    set_rows=320_000,
    archive_rows=3_200_000,
    table_rows=1_280_000,
    memory_rows=20_160_000,
    warm_ups=2,
    rounds=5,
    databases=(SQLITE, POSTGRESQL, MARIADB),
    growth=GROWTH_PARTITIONS,
    disk_bytes=15 * _GB,
)
QUICK = PipelinePlan(
    set_rows=160_000,
    archive_rows=960_000,
    table_rows=320_000,
    memory_rows=0,
    warm_ups=1,
    rounds=2,
    databases=(SQLITE, POSTGRESQL),
    growth=(),
    disk_bytes=4 * _GB,
)


def narrowed(plan: PipelinePlan, only: Sequence[str]) -> PipelinePlan:
    """The plan with nothing in it that these contests do not need; BenchError for unknown ones."""
    if not only:
        return plan
    known = [ARCHIVE, *plan.databases, *([GROWTH] if plan.growth else [])]
    known += [MEMORY] if plan.memory_rows else []
    if unknown := sorted(set(only) - set(known)):
        raise BenchError(f"no contest is called {', '.join(unknown)}; there are {', '.join(known)}")
    # The growth measures a table, too.
    wanted = {*only, *([SQLITE] if GROWTH in only else [])}
    return replace(
        plan,
        databases=tuple(name for name in plan.databases if name in wanted),
        growth=plan.growth if GROWTH in only else (),
        memory_rows=plan.memory_rows if MEMORY in only else 0,
    )


def topic_name(rows: int, partitions: int) -> str:
    """Topics are told apart by what they hold; both brokers have the same."""
    return f"rows-{rows}-{partitions}"


def topics_of(plan: PipelinePlan) -> list[tuple[int, int]]:
    """All (rows, partitions) that the contests read."""
    wanted = {(plan.archive_rows, PARTITIONS), (plan.table_rows, PARTITIONS)}
    wanted |= {(plan.archive_rows, count) for count in plan.growth}
    wanted |= {(plan.table_rows, count) for count in plan.growth}
    return sorted(wanted)


def make_contests(
    plan: PipelinePlan, jobs: Jobs, row_set: RowSet, brokers: Sequence[str], lake: Path
) -> list[Contest]:
    """The contests of a run; `lake` is what the Parquet copy reads."""
    contests = [_archive(plan, jobs, row_set.expected(plan.archive_rows), brokers, lake)]
    expected = row_set.expected(plan.table_rows)
    contests += [_table(plan, jobs, expected, brokers, name) for name in jobs.databases]
    if plan.growth:
        contests.append(_growth(plan, jobs, row_set, brokers))
    return contests


def _archive(
    plan: PipelinePlan, jobs: Jobs, expected: Expected, brokers: Sequence[str], lake: Path
) -> Contest:
    topic = topic_name(plan.archive_rows, PARTITIONS)
    pipelines = [
        Contestant(
            key=f"archive-{broker}",
            title=f"archive, {FED_BY[broker]}",
            run=partial(jobs.archive, broker, topic, expected),
        )
        for broker in brokers
    ]
    others = [
        Contestant(
            key="copy",
            title="Spark copies Parquet to Parquet (ceiling)",
            run=partial(jobs.copy, lake, expected),
        ),
        Contestant(
            key="archive-plain",
            title=f"plain Python consumer, {FED_BY[brokers[0]]}",
            run=partial(jobs.plain_lake, brokers[0], topic, expected),
            has_jit=False,
        ),
    ]
    title = f"archive to Parquet, {expected.rows:,} rows, {PARTITIONS} partitions"
    return Contest(key=ARCHIVE, title=title, contestants=(*pipelines, *others))


def _table(
    plan: PipelinePlan, jobs: Jobs, expected: Expected, brokers: Sequence[str], database: str
) -> Contest:
    topic = topic_name(plan.table_rows, PARTITIONS)
    pipelines = [
        Contestant(
            key=f"{database}-{broker}",
            title=f"table, {FED_BY[broker]}",
            run=partial(jobs.table, database, broker, topic, expected),
        )
        for broker in brokers
    ]
    plain = Contestant(
        key=f"{database}-plain",
        title=f"plain Python consumer, {FED_BY[brokers[0]]}",
        run=partial(jobs.plain_table, database, brokers[0], topic, expected),
        has_jit=False,
    )
    title = f"table in {TITLES[database]}, {expected.rows:,} upserts to {expected.keys:,} keys"
    return Contest(key=database, title=title, contestants=(*pipelines, plain))


def _growth(plan: PipelinePlan, jobs: Jobs, row_set: RowSet, brokers: Sequence[str]) -> Contest:
    archived, upserted = row_set.expected(plan.archive_rows), row_set.expected(plan.table_rows)
    contestants = [
        Contestant(
            key=growth_key("archive", broker, count),
            title=f"archive, {FED_BY[broker]}, {_partitions(count)}",
            run=partial(jobs.archive, broker, topic_name(archived.rows, count), archived),
        )
        for broker in brokers
        for count in plan.growth
    ]
    contestants += [
        Contestant(
            key=growth_key(SQLITE, broker, count),
            title=f"table in SQLite, {FED_BY[broker]}, {_partitions(count)}",
            run=partial(jobs.table, SQLITE, broker, topic_name(upserted.rows, count), upserted),
        )
        for broker in brokers[:1]
        for count in plan.growth
    ]
    return Contest(key=GROWTH, title="growth with partitions", contestants=tuple(contestants))


def _partitions(count: int) -> str:
    return "1 partition" if count == 1 else f"{count} partitions"


def growth_key(job: str, broker: str, partitions: int) -> str:
    """The key of a contestant of the growth."""
    return f"growth-{job}-{broker}-{partitions}"


def growth_lines(plan: PipelinePlan, brokers: Sequence[str]) -> list[tuple[str, dict[int, str]]]:
    """What the plot of the growth draws: a title and its contestants by partitions."""
    drawn = [(f"archive, {FED_BY[broker]}", "archive", broker) for broker in brokers]
    drawn += [(f"table in SQLite, {FED_BY[brokers[0]]}", SQLITE, brokers[0])]
    return [
        (title, {count: growth_key(job, broker, count) for count in plan.growth})
        for title, job, broker in drawn
    ]


def targets_of(plan: PipelinePlan) -> list[Target]:
    """The ratios that are told; those nobody measured are left out by the report."""
    subject = f"archive-{HEADRACE}"
    targets = [
        Target(
            title="archive: fed by headrace / fed by Kafka",
            subject=subject,
            reference=f"archive-{KAFKA}",
            at_least=OF_KAFKA,
        ),
        Target(
            title="archive: fed by headrace / Parquet copy",
            subject=subject,
            reference="copy",
            at_least=OF_COPY,
        ),
        Target(
            title="archive: fed by headrace / plain consumer",
            subject=subject,
            reference="archive-plain",
        ),
    ]
    for name in plan.databases:
        subject, title = f"{name}-{HEADRACE}", TITLES[name]
        targets += [
            Target(
                title=f"upserts into {title}, rows/s",
                subject=subject,
                at_least=None if name == MARIADB else UPSERTS_PER_S,
            ),
            Target(
                title=f"table in {title}: fed by headrace / fed by Kafka",
                subject=subject,
                reference=f"{name}-{KAFKA}",
            ),
            Target(
                title=f"table in {title}: fed by headrace / plain consumer",
                subject=subject,
                reference=f"{name}-plain",
            ),
        ]
    if plan.growth:
        first, last = plan.growth[0], plan.growth[-1]
        targets += [
            Target(
                title=f"archive: {last} partitions / {_partitions(first)}",
                subject=growth_key("archive", HEADRACE, last),
                reference=growth_key("archive", HEADRACE, first),
            )
        ]
    return targets
