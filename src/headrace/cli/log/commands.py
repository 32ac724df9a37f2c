"""`headrace log`: look into log files and check them, with no broker running."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli.endings import EXIT_FAILED, CommandError, UsageError

if TYPE_CHECKING:
    from headrace.log.verify import Finding

app = typer.Typer(help="Look into log files and check them.", no_args_is_help=True)


@app.command(epilog="Example: headrace log dump --print-data orders-0/00000000000000000000.log")
def dump(
    files: Annotated[
        list[Path], typer.Argument(help=".log, .index, .timeindex, .txnindex, .snapshot, …")
    ],
    is_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    deep: Annotated[bool, typer.Option(help="Also a line for each record.")] = False,
    print_data: Annotated[
        bool, typer.Option("--print-data", help="Also keys and values; implies --deep.")
    ] = False,
    offsets_decoder: Annotated[
        bool,
        typer.Option("--offsets-decoder", help="Keys and values of __consumer_offsets, as JSON."),
    ] = False,
) -> None:
    """Print what is in log files, as Kafka's DumpLogSegments does.

    Exits with 1 when a file is damaged.
    """
    from headrace.cli.log.dump import dump_file

    is_damaged = False
    for path in files:
        if not path.is_file():
            raise UsageError(f"{path}: no such file")
        try:
            rows = dump_file(
                path, is_deep=deep, has_data=print_data, decodes_offsets=offsets_decoder
            )
        except ValueError as error:
            raise UsageError(str(error)) from None
        if not is_json:
            print(f"Dumping {path}")
            if path.suffix == ".log" and path.stem.isdecimal():
                print(f"Log starting offset: {int(path.stem)}")
        for row in rows:
            is_damaged |= row.is_damage
            print(row.as_json(path) if is_json else row.as_text())
    if is_damaged:
        raise typer.Exit(EXIT_FAILED)


@app.command(epilog="Example: headrace log verify ~/.local/share/headrace")
def verify(
    directory: Annotated[Path, typer.Argument(help="A data directory, or one partition of it.")],
    is_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """Read every byte of a data directory and name each damaged place.

    Changes nothing. While a broker runs on the directory, a batch it is writing may be told as
    a tail. Exits with 1 when it finds anything.
    """
    if not directory.is_dir():
        raise UsageError(f"{directory}: no such directory")
    from headrace.log.verify import verify_directory

    try:
        with _progress() as on_progress:
            findings = verify_directory(directory, on_progress)
    except OSError as error:
        raise CommandError(
            f"cannot read {error.filename or directory}: {error.strerror}"
        ) from error
    for finding in findings:
        print(_as_json(finding) if is_json else finding)
    if findings:
        raise typer.Exit(EXIT_FAILED)
    if not is_json:
        print(f"{directory}: every batch, index and snapshot is whole")


def _as_json(finding: "Finding") -> str:
    return json.dumps({**finding._asdict(), "path": str(finding.path)}, ensure_ascii=False)


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None]]:
    """A bar on stderr, where that is a terminal; it goes when the work is done."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (BarColumn(40), DownloadColumn(), TimeRemainingColumn())
    is_off = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=is_off) as progress:
        task = progress.add_task("verify")
        yield lambda done, total: progress.update(task, completed=done, total=total)
