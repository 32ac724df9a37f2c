"""What every benchmark's command has around its measurement: options, a place for data, an end."""

import argparse
import json
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from rich.console import Console

from bench import machine
from headrace.errors import HeadraceError


def add_places(parser: argparse.ArgumentParser, out: str = "bench-results") -> None:
    """The options that say where results and data go."""
    parser.add_argument("--json", type=Path, help="also write the results here")
    parser.add_argument("--out", type=Path, default=Path(out), help="where results go")
    parser.add_argument(
        "--data-dir", type=Path, help="where brokers keep data; in --out if not set"
    )


def run_command(run: Callable[[Console], None], console: Console, width_in_a_file: int) -> int:
    """Run it and return the exit code: 1 with a sentence when it cannot be done, 130 by Ctrl-C."""
    if not console.is_terminal:
        console.width = width_in_a_file
    signal.signal(signal.SIGTERM, _exit_on_signal)
    try:
        run(console)
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


@contextmanager
def data_directory(
    options: argparse.Namespace, wanted_bytes: int, console: Console
) -> Iterator[Path]:
    """An empty directory where there is room, removed at the end; says what spoils figures here."""
    options.out.mkdir(parents=True, exist_ok=True)
    parent = options.data_dir or options.out
    parent.mkdir(parents=True, exist_ok=True)
    machine.check_disk(parent, wanted_bytes)
    for warning in machine.warnings():
        console.print(f"[yellow]{warning}[/yellow]", highlight=False)
    directory = Path(tempfile.mkdtemp(prefix="data-", dir=parent.absolute()))
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def write_json(options: argparse.Namespace, name: str, report: Mapping[str, Any]) -> list[Path]:
    """Write the results where they are wanted; return where that is."""
    paths = [options.out / name, *([options.json] if options.json else [])]
    text = json.dumps(report, indent=2, ensure_ascii=False) + "\n"
    for path in paths:
        path.write_text(text, "utf-8")
    return paths
