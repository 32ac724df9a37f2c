"""`python -m demo`: runs the demo on a temporary directory; 0 when all was right."""

import argparse
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn

from rich.console import Console

from demo.duration import Past, expectation, note
from demo.kept_data import how_to_look, keep
from demo.run import DemoOptions, DemoRun
from headrace.errors import HeadraceError

_DEFAULT_SECONDS = 45.0
_DEFAULT_RATE = 3_000.0
_WIDTH_IN_A_FILE = 150
_DEFAULT_PLOT = Path("demo-results/rates.png")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; 1 with a sentence when something was not as it must be."""
    options = _parser().parse_args(arguments)
    console = Console()
    if not console.is_terminal:
        console.width = _WIDTH_IN_A_FILE
    signal.signal(signal.SIGTERM, _exit_on_signal)
    asked = DemoOptions(
        seconds=options.seconds, rate=options.rate, plot=options.plot, is_kept=options.keep
    )
    results = asked.plot.parent
    console.print(expectation(asked.seconds, asked.rate, results), highlight=False)
    started = time.monotonic()
    directory = Path(tempfile.mkdtemp(prefix="headrace-demo-"))
    is_failed = True
    try:
        DemoRun(console, directory, asked).run()
        is_failed = False
        took_seconds = time.monotonic() - started
        note(Past(feed_seconds=asked.seconds, rate=asked.rate, took_seconds=took_seconds), results)
        kept = keep(directory, results)
        console.print(how_to_look(kept), markup=False, highlight=False, soft_wrap=True)
    except KeyboardInterrupt:
        is_failed = False
        print("headrace demo: interrupted; all stopped", file=sys.stderr)
        return 130
    except (HeadraceError, OSError) as error:
        print(f"headrace demo: {error}", file=sys.stderr)
        return 1
    finally:
        # The logs that an error names are in it.
        if is_failed:
            print(f"headrace demo: {directory} is left for a look", file=sys.stderr)
        else:
            shutil.rmtree(directory, ignore_errors=True)
    return 0


def _exit_on_signal(signal_number: int, frame: FrameType | None) -> NoReturn:
    # Unwinds every `with`: pipelines end after their batch, the directory is removed.
    raise SystemExit(128 + signal_number)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m demo", description=__doc__)
    parser.add_argument(
        "--seconds", type=float, default=_DEFAULT_SECONDS, help="how long the sensors send"
    )
    parser.add_argument(
        "--rate", type=float, default=_DEFAULT_RATE, help="messages a second, on average"
    )
    parser.add_argument(
        "--plot", type=Path, default=_DEFAULT_PLOT, help="where the picture of the rates goes"
    )
    parser.add_argument("--keep", action="store_true", help="leave it all running until Ctrl-C")
    return parser


if __name__ == "__main__":
    sys.exit(main())
