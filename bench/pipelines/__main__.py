"""`python -m bench.pipelines`: the pipelines beside all they are held against."""

import argparse
import signal
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from types import FrameType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from bench import machine
from bench.build import build
from bench.command import add_places, data_directory, write_json
from bench.driver import Driver
from bench.drivers.headrace import HeadraceDriver
from bench.drivers.kafka import KafkaDriver
from bench.pipelines.metering import Pass
from bench.pipelines.plan import (
    FULL,
    MEMORY,
    QUICK,
    PipelinePlan,
    growth_lines,
    narrowed,
    targets_of,
)
from bench.pipelines.plots import write_plots
from bench.pipelines.report import make_tables, to_json, to_markdown
from bench.pipelines.suite import SuiteResult, Teller, run_suite
from bench.plots import can_plot
from bench.report import number
from headrace.errors import HeadraceError
from headrace.kafka.jars import KAFKA_VERSION

NOTES = (
    "All Spark jobs run in one warm session with the defaults of `headrace pipeline run`. Each "
    "contest is warmed up unmeasured; then its contestants take turns, the order swapped each "
    "round.",
    "A pass reads the whole topic in batches of the default size, with checkpoint, commit of the "
    "consumer group and compaction, and its result is counted and checked; a wrong count ends the "
    "run.",
    "CPU is that of the JVM and Python; the broker's and the database's are told apart. The plain "
    "consumer's clock starts at its first message.",
    f"Both brokers run all the time and are idle when not read. Kafka {KAFKA_VERSION} has its "
    "start script's JVM settings. Databases are durable as they come (fsync on).",
)
_WIDTH_IN_A_FILE = 150
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; exit 1 with a sentence when it cannot be run or a result is wrong."""
    options = _parser().parse_args(arguments)
    console = Console()
    if not console.is_terminal:
        console.width = _WIDTH_IN_A_FILE
    ending = _Ending()
    try:
        _run(options, console, ending)
    except Exception as error:
        # What fails because it was told to end has not failed.
        if ending.signal_number is None and not isinstance(error, HeadraceError | OSError):
            raise
        if ending.signal_number is None:
            print(f"headrace bench: {error}", file=sys.stderr)
            return 1
    except KeyboardInterrupt:
        pass
    finally:
        ending.forget()
    if ending.signal_number is not None:
        print("headrace bench: interrupted; all stopped, data removed", file=sys.stderr)
        return 128 + ending.signal_number
    return 0


class _Ending:
    """Remembers the first signal; the second ends at once. Not raised at the first: an exception
    in the middle of a question to Java would leave its connection unusable."""

    def __init__(self) -> None:
        self.signal_number: int | None = None
        self._former = {each: signal.signal(each, self._note) for each in _SIGNALS}

    def forget(self) -> None:
        """Put back what the signals did before."""
        for each, handler in self._former.items():
            signal.signal(each, handler)

    def _note(self, signal_number: int, frame: FrameType | None) -> None:
        if self.signal_number is not None:
            raise KeyboardInterrupt
        self.signal_number = signal_number


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.pipelines", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the main rows in about four minutes")
    parser.add_argument("--rounds", type=int, help=f"{FULL.rounds}, or {QUICK.rounds} with --quick")
    parser.add_argument("--warm-ups", type=int, help="unmeasured passes of each contestant")
    parser.add_argument("--rows", type=int, help="rows of every topic, a multiple of 32,000")
    parser.add_argument("--memory-rows", type=int, help="rows of the memory run; 0 leaves it out")
    parser.add_argument(
        "--only", action="append", metavar="CONTEST", help="archive, sqlite, …, growth, memory"
    )
    parser.add_argument("--without-kafka", action="store_true", help="leave Apache Kafka out")
    add_places(parser, out="bench-results/pipelines")
    return parser


def _run(options: argparse.Namespace, console: Console, ending: _Ending) -> None:
    plan = narrowed(_plan(options), options.only or ())
    drivers: list[Driver] = [HeadraceDriver()]
    if not options.without_kafka:
        drivers.append(KafkaDriver())
    build("replay")
    facts: dict[str, Any] = {
        "mode": "quick" if options.quick else "full",
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "rounds": plan.rounds,
        "warm_ups": plan.warm_ups,
        "machine": machine.describe(),
        "notes": NOTES,
    }
    with (
        data_directory(options, plan.disk_bytes, console) as place,
        _ProgressTeller(console, ending) as teller,
    ):
        outcome = run_suite(plan, drivers, place, teller, options.only or ())
    _report(plan, outcome, facts, options, console)


def _plan(options: argparse.Namespace) -> PipelinePlan:
    plan = QUICK if options.quick else FULL
    if options.rows:
        plan = replace(
            plan, set_rows=options.rows, archive_rows=options.rows, table_rows=options.rows
        )
    changes = {"rounds": options.rounds, "warm_ups": options.warm_ups}
    changes["memory_rows"] = options.memory_rows
    return replace(plan, **{name: value for name, value in changes.items() if value is not None})


class _ProgressTeller(Teller):
    """A bar on a terminal; a line a measured pass everywhere."""

    def __init__(self, console: Console, ending: _Ending) -> None:
        self._ending = ending
        columns = (BarColumn(30), MofNCompleteColumn(), TimeElapsedColumn())
        self._console = console
        self._progress = Progress(*columns, TextColumn("{task.description}"), console=console)
        self._task = self._progress.add_task("", total=None)

    def __enter__(self) -> "_ProgressTeller":
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def say(self, line: str) -> None:
        self._console.print(line, highlight=False)

    def expect(self, passes: int) -> None:
        self._progress.update(self._task, total=passes)

    def is_stop_asked(self) -> bool:
        return self._ending.signal_number is not None

    def begin(self, what: str) -> None:
        if self.is_stop_asked():
            raise KeyboardInterrupt
        self._progress.update(self._task, description=what)

    def end(self, what: str, measured: Pass | None) -> None:
        self._progress.advance(self._task)
        if measured is not None:
            rate, cost = number(measured.rows_per_second), number(measured.cpu_per_million)
            self.say(f"{what}: {rate} rows/s, {cost} CPU s/M")


def _report(
    plan: PipelinePlan,
    outcome: SuiteResult,
    facts: dict[str, Any],
    options: argparse.Namespace,
    console: Console,
) -> None:
    targets, contests, results = targets_of(plan), outcome.contests, outcome.results
    for table in make_tables(contests, targets, results) if contests else ():
        console.print(table)
    notes = [*NOTES, *([outcome.memory.describe()] if outcome.memory else [])]
    for note in notes:
        console.print(f"- {note}", highlight=False)
    report = to_json(contests, targets, results, facts)
    if outcome.memory:
        report[MEMORY] = {
            "growth": outcome.memory.growth,
            "peak_bytes": outcome.memory.peak_bytes,
            "samples": [sample._asdict() for sample in outcome.memory.samples],
        }
    paths = [*write_json(options, "results.json", report), options.out / "results.md"]
    paths[-1].write_text(to_markdown(contests, targets, results, notes), "utf-8")
    if can_plot():
        lines = growth_lines(plan, outcome.brokers)
        paths += write_plots(contests, lines, results, outcome.memory, options.out)
    console.print("written:", *map(str, paths), highlight=False)


if __name__ == "__main__":
    sys.exit(main())
