"""`python -m bench.stalls`: the longest stall of an innocent client beside each load."""

import argparse
import json
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from rich.console import Console

from bench import machine
from bench.build import build
from bench.report import KAFKA, SUBJECT
from bench.stalls.load import Load
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
    console = Console(soft_wrap=True)
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
    parser.add_argument("--json", type=Path, help="also write the results here")
    parser.add_argument("--out", type=Path, default=Path("bench-results"), help="for stalls.json")
    parser.add_argument("--data-dir", type=Path, help="where brokers keep data; --out if not set")
    return parser


def _run(options: argparse.Namespace, console: Console) -> None:
    loads, engines = _choose(options.only), _ENGINES[options.engine]
    scale = options.scale or (_QUICK_SCALE if options.quick else 1.0)
    if not 0 < scale <= 1:
        raise HeadraceError(f"--scale {scale:g} is not above 0 and at most 1")
    options.out.mkdir(parents=True, exist_ok=True)
    data_directory = options.data_dir or options.out
    data_directory.mkdir(parents=True, exist_ok=True)
    machine.check_disk(data_directory, _DISK_BYTES)
    build("ping")
    facts: dict[str, Any] = {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "scale": scale,
        "kafka": KAFKA_VERSION,
        "machine": machine.describe(),
        "limit_ms": LIMIT_MS,
    }
    for warning in machine.warnings():
        console.print(f"[yellow]{warning}[/yellow]", highlight=False)
    place = Path(tempfile.mkdtemp(prefix="stalls-", dir=data_directory.absolute()))
    results: list[Measured] = []
    failures: list[dict[str, str]] = []
    paths = [options.out / "stalls.json", *([options.json] if options.json else [])]
    try:
        for engine in engines:
            with tempfile.TemporaryDirectory(dir=place) as first:
                driver_of(engine, LOADS[0]).prepare(Path(first))
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
                report = json.dumps({**facts, "rows": rows, "failures": failures}, indent=2)
                for path in paths:
                    path.write_text(report + "\n", "utf-8")
    finally:
        shutil.rmtree(place, ignore_errors=True)
    print()
    print(markdown(results, loads))
    print()
    console.print("written:", *map(str, paths), highlight=False)


def _measure(
    load: Load,
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


def _choose(names: list[str] | None) -> list[Load]:
    if not names:
        return list(LOADS)
    chosen = [load for load in LOADS if load.name in names]
    if unknown := set(names) - {load.name for load in chosen}:
        known = ", ".join(load.name for load in LOADS)
        raise HeadraceError(f"no load is called {', '.join(sorted(unknown))}; there are {known}")
    return chosen


if __name__ == "__main__":
    sys.exit(main())
