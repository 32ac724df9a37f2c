"""What a command says: tables, facts, JSON, a question before something is lost.

Tables are for people and are drawn only on a terminal that can draw; elsewhere, and with NO_COLOR,
they are aligned plain text that never wraps. `--json` is for programs: one object a line, in every
command.
"""

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Literal, TextIO

import typer

from headrace.cli.endings import CommandError, UsageError

Json = Annotated[bool, typer.Option("--json", help="One JSON object a line.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]

# Those on which rich moves no cursor: what it would redraw, it never shows.
_DUMB_TERMINALS = ("dumb", "unknown")
NONE = "-"  # stands in a table where there is nothing to tell


def is_plain(stream: TextIO | None = None) -> bool:
    """Whether `stream`, stdout unless named, gets neither colour nor lines, nor is redrawn."""
    is_dumb = os.environ.get("TERM", "").lower() in _DUMB_TERMINALS
    return is_dumb or bool(os.environ.get("NO_COLOR")) or not (stream or sys.stdout).isatty()


def help_style() -> Literal["rich"] | None:
    """`rich_markup_mode` for a typer app: boxes around the help on a terminal only."""
    return None if is_plain() else "rich"


def confirm(question: str, *, is_yes: bool) -> None:
    """Ask on a terminal; elsewhere only --yes will do. Raises CommandError unless agreed."""
    if is_yes:
        return
    if not sys.stdin.isatty():
        raise UsageError(f"{question} There is no terminal to ask on; say --yes if you mean it")
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise CommandError("nothing was changed")


def human_bytes(count: int) -> str:
    """Bytes in the unit that leaves one to three digits: 980 B, 1.5 MiB."""
    amount = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"


def print_json(entry: Mapping[str, object]) -> None:
    """One object on one line."""
    print(json.dumps(entry, ensure_ascii=False))


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], *, numbers: Iterable[str] = ()
) -> None:
    """Print rows under their columns; those in `numbers` are set to the right."""
    cells = [["" if cell is None else str(cell) for cell in row] for row in rows]
    is_right = [column in set(numbers) for column in columns]
    if is_plain():
        _print_aligned(columns, cells, is_right)
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for column, right in zip(columns, is_right, strict=True):
        table.add_column(column, justify="right" if right else "left", overflow="fold")
    for row in cells:
        table.add_row(*map(Text, row))  # Text: a name with [brackets] is no markup
    Console().print(table)


def print_facts(facts: Mapping[str, object]) -> None:
    """Print names and values, one pair a line, the values aligned."""
    width = max(map(len, facts), default=0)
    for name, value in facts.items():
        print(f"{name + ':':<{width + 1}} {value}")


def print_heading(text: str) -> None:
    """Set one part of an answer off from the one before."""
    if is_plain():
        print(text)
        return
    from rich.console import Console
    from rich.text import Text

    Console().print(Text(text, style="bold"))


def _print_aligned(
    columns: Sequence[str], rows: Sequence[Sequence[str]], is_right: Sequence[bool]
) -> None:
    lines = [[column.upper() for column in columns], *rows]
    widths = [max(len(line[index]) for line in lines) for index in range(len(columns))]
    for line in lines:
        words = (
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(line, widths, is_right, strict=True)
        )
        print("  ".join(words).rstrip())
