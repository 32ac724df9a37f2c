"""`python -m bench`: headrace beside Apache Kafka, on this machine, in one run."""

import argparse
import json
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from rich.console import Console

from bench import machine
from bench.build import build
from bench.clients import librdkafka_library
from bench.driver import Driver
from bench.drivers.headrace import HeadraceDriver
from bench.drivers.kafka import KafkaDriver
from bench.plots import can_plot, write_plots
from bench.report import BASELINE, KAFKA, PROCESS_ROWS, make_table, to_json
from bench.suite import FULL, QUICK, run_rounds
from bench.workloads import WORKLOADS, Workload
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

_WIDTH_IN_A_FILE = 150


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; exit 1 with a sentence when it cannot be run."""
    options = _parser().parse_args(arguments)
    console = Console()
    if not console.is_terminal:
        console.width = _WIDTH_IN_A_FILE
    signal.signal(signal.SIGTERM, _exit_on_signal)
    try:
        _run(options, console)
    except KeyboardInterrupt:
        print("headrace bench: interrupted; brokers stopped, data removed", file=sys.stderr)
        return 130
    except (HeadraceError, OSError) as error:
        print(f"headrace bench: {error}", file=sys.stderr)
        return 1
    return 0


def _exit_on_signal(signal_number: int, frame: FrameType | None) -> NoReturn:
    # Unwinds every `with`, so that brokers are stopped and data is removed.
    raise SystemExit(128 + signal_number)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    names = ", ".join(workload.name for workload in WORKLOADS)
    parser.add_argument("--quick", action="store_true", help="the main rows in two minutes")
    parser.add_argument("--rounds", type=int, help="rounds; 5, or 2 with --quick")
    parser.add_argument("--seconds", type=float, help="length of each measurement")
    parser.add_argument("--only", action="append", metavar="NAME", help=f"one of: {names}")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--only-kafka", action="store_true", help="measure Kafka alone")
    which.add_argument("--only-headrace", action="store_true", help="measure headrace alone")
    which.add_argument(
        "--baseline",
        type=Path,
        metavar="CHECKOUT",
        help="measure another checkout of headrace instead of Kafka (build its C part in place)",
    )
    parser.add_argument("--json", type=Path, help="also write the results here")
    parser.add_argument(
        "--out", type=Path, default=Path("bench-results"), help="where results and plots go"
    )
    parser.add_argument(
        "--data-dir", type=Path, help="where brokers keep data; in --out if not set"
    )
    return parser


def _run(options: argparse.Namespace, console: Console) -> None:
    plan = QUICK if options.quick else FULL
    plan = replace(
        plan, rounds=options.rounds or plan.rounds, seconds=options.seconds or plan.seconds
    )
    workloads = _choose(options)
    drivers = _drivers(options)
    options.out.mkdir(parents=True, exist_ok=True)
    data_directory = options.data_dir or options.out
    data_directory.mkdir(parents=True, exist_ok=True)
    machine.check_disk(data_directory, plan.disk_bytes)
    for program in ("replay", "rdk"):
        build(program)
    facts: dict[str, Any] = {
        "mode": "quick" if options.quick else "full",
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "rounds": plan.rounds,
        "seconds": plan.seconds,
        "kafka": KAFKA_VERSION,
        "librdkafka": Path(librdkafka_library()).name,
        "machine": machine.describe(),
        "fairness": FAIRNESS,
    }
    for warning in machine.warnings():
        console.print(f"[yellow]{warning}[/yellow]", highlight=False)
    place = Path(tempfile.mkdtemp(prefix="data-", dir=data_directory.absolute()))
    try:
        machine.touch_page_cache(place, plan.touched_bytes)
        results = run_rounds(
            drivers,
            workloads,
            plan,
            place,
            lambda line: console.print(line, highlight=False),
            reference=BASELINE if options.baseline else KAFKA,
        )
    finally:
        shutil.rmtree(place, ignore_errors=True)

    rows = [*(row for workload in workloads for row in workload.rows), *PROCESS_ROWS]
    console.print(make_table(results, rows))
    for note in FAIRNESS:
        console.print(f"- {note}", highlight=False)
    report = json.dumps(to_json(results, rows, facts), indent=2, ensure_ascii=False) + "\n"
    paths = [options.out / "results.json", *([options.json] if options.json else [])]
    for path in paths:
        path.write_text(report, "utf-8")
    if can_plot():
        paths += write_plots(results, rows, options.out)
    console.print("written:", *map(str, paths), highlight=False)


def _choose(options: argparse.Namespace) -> list[Workload]:
    if not options.only:
        return [w for w in WORKLOADS if w.is_quick or not options.quick]
    chosen = [w for w in WORKLOADS if w.name in options.only]
    if unknown := set(options.only) - {w.name for w in chosen}:
        names = ", ".join(w.name for w in WORKLOADS)
        raise HeadraceError(
            f"no workload is called {', '.join(sorted(unknown))}; there are {names}"
        )
    return chosen


def _drivers(options: argparse.Namespace) -> list[Driver]:
    if options.only_kafka:
        return [KafkaDriver()]
    if options.only_headrace:
        return [HeadraceDriver()]
    if options.baseline:
        source = options.baseline.absolute()
        if not (source / "src" / "headrace").is_dir():
            raise HeadraceError(f"--baseline {options.baseline}: there is no src/headrace in it")
        return [HeadraceDriver(BASELINE, source), HeadraceDriver()]
    return [KafkaDriver(), HeadraceDriver()]


if __name__ == "__main__":
    sys.exit(main())
