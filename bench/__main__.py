"""`python -m bench`: headrace beside Apache Kafka, or beside a commit before, on this machine."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from bench import comparison, machine
from bench.baseline import build_commit, describe_checkout, find_commit
from bench.build import build
from bench.clients import librdkafka_library
from bench.command import add_places, data_directory, run_command, write_json
from bench.driver import Driver
from bench.drivers.headrace import HeadraceDriver
from bench.drivers.kafka import KafkaDriver
from bench.plots import can_plot, write_plots
from bench.report import PROCESS_ROWS, make_table, to_json
from bench.suite import FULL, QUICK, Plan, run_rounds
from bench.workloads import WORKLOADS, Row, Workload
from headrace.errors import HeadraceError
from headrace.kafka.jars import KAFKA_VERSION

FAIRNESS = (
    "Both brokers run alone, in turn, on the same disk, in fresh directories; the order is "
    "swapped each round.",
    "Each broker first runs the workloads unmeasured (Kafka over and over, until its JIT is warm), "
    "and the page cache was touched before the first round.",
    f"Kafka {KAFKA_VERSION} runs with its start script's JVM settings (1 GB heap, G1) and its "
    "default configuration.",
    "'in page cache': Kafka's default acks=all does not wait for the disk, and headrace runs with "
    "headrace.acks.all.sync=false.",
    "'on disk (fsync)': headrace's default acks=all (group commit), and Kafka with "
    "log.flush.interval.messages=1.",
    "Clients are C programs and share the cores with the broker; where librdkafka is named it can "
    "be the limit itself.",
)

_WIDTH_IN_A_FILE, _WIDTH_BESIDE_A_BASELINE = 150, 230
# A spread takes rounds; the quick run's two are for a look.
_ROUNDS_BESIDE_A_BASELINE = 5
_GROUPS = "groups"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; exit 1 with a sentence when it cannot be run."""
    options = _parser().parse_args(arguments)
    if options.baseline:
        run = partial(_run_beside_a_baseline, options)
        return run_command(run, Console(), _WIDTH_BESIDE_A_BASELINE)
    return run_command(partial(_run, options), Console(), _WIDTH_IN_A_FILE)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    names = ", ".join(workload.name for workload in WORKLOADS)
    parser.add_argument("--quick", action="store_true", help="the main rows in two minutes")
    parser.add_argument(
        "--rounds",
        type=int,
        help=f"rounds; {FULL.rounds}, or {QUICK.rounds} with --quick, or "
        f"{_ROUNDS_BESIDE_A_BASELINE} with --baseline",
    )
    parser.add_argument("--seconds", type=float, help="length of each measurement")
    parser.add_argument("--only", action="append", metavar="NAME", help=f"one of: {names}")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--only-kafka", action="store_true", help="measure Kafka alone")
    which.add_argument("--only-headrace", action="store_true", help="measure headrace alone")
    which.add_argument(
        "--baseline",
        metavar="REV",
        help="build another commit and measure it instead of Kafka, in short turns with this one",
    )
    add_places(parser)
    return parser


def _run(options: argparse.Namespace, console: Console) -> None:
    plan = _plan(options)
    workloads = _choose(options)
    with data_directory(options, plan.disk_bytes, console) as place:
        facts = {"kafka": KAFKA_VERSION, "fairness": FAIRNESS, **_facts(options, plan)}
        machine.touch_page_cache(place, plan.touched_bytes)
        say = partial(console.print, highlight=False)
        results = run_rounds(_drivers(options), workloads, plan, place, say)
    rows = _rows(workloads)
    console.print(make_table(results, rows))
    for note in FAIRNESS:
        console.print(f"- {note}", highlight=False)
    paths = write_json(options, "results.json", to_json(results, rows, facts))
    if can_plot():
        paths += write_plots(results, rows, options.out)
    console.print("written:", *map(str, paths), highlight=False)


def _run_beside_a_baseline(options: argparse.Namespace, console: Console) -> None:
    commit = find_commit(options.baseline)
    plan = _plan(options)
    workloads = _choose(options)
    say = partial(console.print, highlight=False)
    with data_directory(options, plan.disk_bytes, console) as place:
        say(f"building {commit.revision}: {commit.commit_id[:12]} {commit.subject}", markup=False)
        source = build_commit(commit, place / "source")
        facts = {
            "baseline": commit._asdict(),
            "now": describe_checkout(),
            **_facts(options, plan),
        }
        machine.touch_page_cache(place, plan.touched_bytes)
        drivers = [HeadraceDriver(comparison.BASELINE, source), HeadraceDriver(comparison.NOW)]
        results = run_rounds(drivers, workloads, plan, place, say, is_side_by_side=True)
    compared = comparison.compare(results, _rows(workloads))
    console.print(comparison.make_table(compared))
    say(f"- {comparison.NOTE}")
    report = comparison.to_json(compared, facts)
    console.print("written:", *map(str, write_json(options, "baseline.json", report)))


def _plan(options: argparse.Namespace) -> Plan:
    plan = QUICK if options.quick else FULL
    rounds = _ROUNDS_BESIDE_A_BASELINE if options.baseline else plan.rounds
    return replace(plan, rounds=options.rounds or rounds, seconds=options.seconds or plan.seconds)


def _facts(options: argparse.Namespace, plan: Plan) -> dict[str, Any]:
    for program in ("replay", "rdk"):
        build(program)
    return {
        "mode": "quick" if options.quick else "full",
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "rounds": plan.rounds,
        "seconds": plan.seconds,
        "librdkafka": Path(librdkafka_library()).name,
        "machine": machine.describe(),
    }


def _rows(workloads: Sequence[Workload]) -> list[Row]:
    return [*(row for workload in workloads for row in workload.rows), *PROCESS_ROWS]


def _choose(options: argparse.Namespace) -> list[Workload]:
    if not options.only:
        return [w for w in WORKLOADS if _is_asked_for(w, options)]
    chosen = [w for w in WORKLOADS if w.name in options.only]
    if unknown := set(options.only) - {w.name for w in chosen}:
        names = ", ".join(w.name for w in WORKLOADS)
        raise HeadraceError(
            f"no workload is called {', '.join(sorted(unknown))}; there are {names}"
        )
    return chosen


def _is_asked_for(workload: Workload, options: argparse.Namespace) -> bool:
    # What a commit did to the groups is asked of every commit; it takes a minute a round.
    is_quick = workload.is_quick or (options.baseline and workload.name == _GROUPS)
    return is_quick or not options.quick


def _drivers(options: argparse.Namespace) -> list[Driver]:
    if options.only_kafka:
        return [KafkaDriver()]
    if options.only_headrace:
        return [HeadraceDriver()]
    return [KafkaDriver(), HeadraceDriver()]


if __name__ == "__main__":
    sys.exit(main())
