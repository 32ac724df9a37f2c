"""What the demo shows while it runs: a table on a terminal, a line now and then elsewhere."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.live import Live
from rich.table import Table

from demo.watch import Progress, Watcher, rates_in

_PLAIN_EVERY_SECONDS = 5.0


class Shows(Protocol):
    """Shows the last look of a watcher."""

    def __call__(self, what: str) -> None: ...


@contextmanager
def view(console: Console, watcher: Watcher) -> Iterator[Shows]:
    """Give the function that shows the watcher's last look, and what is waited for."""
    if not console.is_terminal or console.is_dumb_terminal:  # on that one nothing is redrawn
        yield _plain(console, watcher)
        return
    with Live(console=console, auto_refresh=False, transient=False) as live:
        yield lambda what: live.update(make_table(watcher, what), refresh=True)


def _plain(console: Console, watcher: Watcher) -> Shows:
    shown_at = float("-inf")

    def show(what: str) -> None:
        nonlocal shown_at
        now = time.monotonic()
        if now - shown_at >= _PLAIN_EVERY_SECONDS:
            shown_at = now
            console.print(line(watcher, what), highlight=False, soft_wrap=True)

    return show


def line(watcher: Watcher, what: str) -> str:
    """All in one line."""
    last = watcher.looks[-1]
    parts = [f"{last.at_s:5.0f} s  in {last.sent:,} ({_rate(watcher, None):,.0f}/s)"]
    parts += [
        f"{group} {last.done[group]:,} ({_rate(watcher, group):,.0f}/s, lag {last.lag(group):,})"
        for group in watcher.groups
    ]
    parts.append(f"dead letters {last.dead_letters:,}")
    return f"{', '.join(parts)}; {what}"


def make_table(watcher: Watcher, what: str) -> Table:
    """The same as a table."""
    last = watcher.looks[-1]
    table = Table(title=f"{last.at_s:.0f} s: {what}", title_justify="left")
    table.add_column("", min_width=24)
    for heading in ("messages", "messages/s", "lag"):
        table.add_column(heading, justify="right", min_width=11)
    table.add_row("sensors → topic", f"{last.sent:,}", f"{_rate(watcher, None):,.0f}", "")
    for group in watcher.groups:
        table.add_row(
            f"topic → {group}",
            f"{last.done[group]:,}" if last.done[group] else "starting",
            f"{_rate(watcher, group):,.0f}",
            f"{last.lag(group):,}",
        )
    table.add_row("dead letters", f"{last.dead_letters:,}", "", "")
    return table


def _rate(watcher: Watcher, group: str | None) -> float:
    looks = watcher.looks[-60:]
    return rates_in(looks, [_count(look, group) for look in looks])[-1]


def _count(look: Progress, group: str | None) -> int:
    return look.sent if group is None else look.done[group]
