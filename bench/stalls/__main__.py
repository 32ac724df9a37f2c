"""`python -m bench.stalls`: the longest stall of an innocent client beside each load."""

import argparse
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from bench import machine
from bench.build import build
from bench.command import add_places, data_directory, run_command, write_json
from bench.report import KAFKA, SUBJECT
from bench.stalls.load import StallLoad
from bench.stalls.loads import LOADS
from bench.stalls.report import LIMIT_MS, markdown, verdict
from bench.stalls.suite import Measured, driver_of, measure
from headrace.errors import HeadraceError
from headrace.kafka.jars import KAFKA_VERSION

_WIDTH_IN_A_FILE = 400
_DISK_BYTES = 8_000_000_000
_QUICK_SCALE = 0.1
_WARM_UP_SECONDS = {True: 2.0, False: 8.0}  # quick or not; Kafka's JIT needs it
_ENGINES = {SUBJECT: (SUBJECT,), KAFKA: (KAFKA,), "both": (SUBJECT, KAFKA)}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure; exit 1 with a sentence when it cannot be done. Stalls are told, not judged."""
    options = _parser().parse_args(arguments)
    return run_command(partial(_run, options), Console(soft_wrap=True), _WIDTH_IN_A_FILE)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.stalls",
        description="Measure the longest stall of an innocent client (ApiVersions, Produce, "
        "Metadata, one a millisecond; a group member with a 6 s session) beside each hostile or "
        f"heavy load, on headrace and on Apache Kafka {KAFKA_VERSION}, each load on a fresh "
        "broker. Prints the table for docs/benchmarks.md and writes all figures as JSON.",
        epilog="loads: " + "; ".join(f"{load.name} ({load.title})" for load in LOADS),
    )
    parser.add_argument("--only", action="append", metavar="NAME", help="one load; repeatable")
    parser.add_argument("--engine", choices=sorted(_ENGINES), default="both")
    parser.add_argument(
        "--quick", action="store_true", help=f"every load at {_QUICK_SCALE:g} of its size"
    )
    parser.add_argument("--scale", type=float, help="size of the loads; 1, or less with --quick")
    add_places(parser)
    return parser


def _run(options: argparse.Namespace, console: Console) -> None:
    loads, engines = _choose(options.only), _ENGINES[options.engine]
    scale = options.scale or (_QUICK_SCALE if options.quick else 1.0)
    if not 0 < scale <= 1:
        raise HeadraceError(f"--scale {scale:g} is not above 0 and at most 1")
    build("ping")
    facts: dict[str, Any] = {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "scale": scale,
        "kafka": KAFKA_VERSION,
        "machine": machine.describe(),
        "limit_ms": LIMIT_MS,
    }
    results: list[Measured] = []
    failures: list[dict[str, str]] = []
    with data_directory(options, _DISK_BYTES, console) as place:
        for engine in engines:
            driver_of(engine, LOADS[0]).prepare(place / f"{engine}-prepare")
        for number, load in enumerate(loads, 1):
            for engine in engines:
                head = f"{number} of {len(loads)}, {load.name}, {engine}"
                try:
                    results.append(
                        _measure(load, engine, place, scale, options.quick, console, head)
                    )
                except (HeadraceError, OSError) as error:
                    # The next load gets a fresh broker: one failure does not spoil the table.
                    failures.append({"load": load.name, "engine": engine, "error": str(error)})
                    console.print(f"[red]{head}: {error}[/red]", highlight=False, markup=True)
                rows = [one.to_json() for one in results]
                report = {**facts, "rows": rows, "failures": failures}
                paths = write_json(options, "stalls.json", report)
    print()
    print(markdown(results, loads))
    print()
    console.print("written:", *map(str, paths), highlight=False)


def _measure(
    load: StallLoad,
    engine: str,
    place: Path,
    scale: float,
    is_quick: bool,
    console: Console,
    head: str,
) -> Measured:
    began_at = time.monotonic()
    say_step = console.status(head) if console.is_terminal else None

    def say(step: str) -> None:
        if say_step:
            say_step.update(f"{head}: {step}")

    if say_step:
        say_step.start()
    try:
        measured = measure(
            load,
            driver_of(engine, load),
            place / f"{engine}-{load.name}",
            scale=scale,
            warm_up_seconds=_WARM_UP_SECONDS[is_quick],
            say=say,
        )
    finally:
        if say_step:
            say_step.stop()
    waiting = measured.waiting
    console.print(
        f"{head}: longest {waiting.longest_ms:.1f} ms ({waiting.longest_kind}), "
        f"p99.9 {waiting.p999_ms:.1f} ms, echo {waiting.echo_longest_ms:.1f} ms, "
        f"client's own gap {waiting.client_gap_ms:.1f} ms, "
        f"{'member EVICTED, ' if waiting.is_evicted else ''}"
        f"{'LOST ' + ' '.join(waiting.lost) + ', ' if waiting.lost else ''}"
        f"under {LIMIT_MS:.0f} ms: {verdict(measured).strip('*')}; "
        f"culprit: {measured.outcome.sentence()}; {time.monotonic() - began_at:.0f} s",
        highlight=False,
        markup=False,
    )
    return measured


def _choose(names: list[str] | None) -> list[StallLoad]:
    if not names:
        return list(LOADS)
    chosen = [load for load in LOADS if load.name in names]
    if unknown := set(names) - {load.name for load in chosen}:
        known = ", ".join(load.name for load in LOADS)
        raise HeadraceError(f"no load is called {', '.join(sorted(unknown))}; there are {known}")
    return chosen


if __name__ == "__main__":
    sys.exit(main())
