"""`headrace top`: how fast messages come into topics and groups read them, now and again."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Annotated

import typer

from headrace.cli.connection import Connection, connects
from headrace.cli.endings import CommandError, sentence_of
from headrace.cli.interruption import Interruption
from headrace.cli.terminal import Json, is_plain, print_json
from headrace.cli.top.snapshot import ClusterSnapshot, take_snapshot
from headrace.cli.top.view import Frame, as_json, print_frame, renderable
from headrace.client.admin import Admin
from headrace.client.errors import BusError

_MIN_INTERVAL_S = 0.1
_PATIENCE_S = 2.0  # a broker that is away is to be told soon, not after --timeout


@connects
def top(
    *,
    interval: Annotated[
        float,
        typer.Option(min=_MIN_INTERVAL_S, metavar="SECONDS", help="Time between two looks."),
    ] = 2.0,
    once: Annotated[bool, typer.Option("--once", help="Show one interval, then end.")] = False,
    is_json: Json = False,
    connection: Connection,
) -> None:
    """Show the rate of every topic and every group until Ctrl-C, which ends it with 130.

    A topic's rate is that of its end offsets, a group's that of its committed offsets.
    """
    timeout_s = min(connection.timeout_s, max(interval, _PATIENCE_S))
    admin = connection.admin().with_timeout(timeout_s)
    with Interruption() as interruption, _shown(is_json=is_json, is_once=once) as show:
        for frame in _frames(connection, admin, interval, interruption):
            if once and frame.trouble is not None:
                raise CommandError(frame.trouble)
            show(frame)
            if once:
                return
        raise typer.Exit(interruption.exit_code)


def _frames(
    connection: Connection, admin: Admin, interval_s: float, interruption: Interruption
) -> Iterator[Frame]:
    """A frame an interval, until a signal comes; the first after one interval."""
    before = _snapshot(admin)
    next_at = time.monotonic()
    while True:
        next_at = max(next_at + interval_s, time.monotonic())
        if not interruption.sleep_until(next_at):
            return
        after = _snapshot(admin)
        if interruption:
            return
        now = datetime.now(UTC)
        if isinstance(after, str):
            yield Frame(now, connection.bootstrap, trouble=after)
        elif isinstance(before, ClusterSnapshot):
            yield Frame(now, connection.bootstrap, before, after)
        before = after


def _snapshot(admin: Admin) -> ClusterSnapshot | str:
    """A snapshot, or the sentence that says why there is none."""
    try:
        return take_snapshot(admin)
    except BusError as error:
        return sentence_of(error)


@contextmanager
def _shown(*, is_json: bool, is_once: bool) -> Iterator[Callable[[Frame], None]]:
    """What shows a frame: a screen of its own on a terminal, else lines one after the other."""
    if is_json:
        yield lambda frame: print_json(as_json(frame))
    elif is_once or is_plain():
        yield print_frame
    else:
        from rich.live import Live

        with Live(screen=True, auto_refresh=False) as live:
            yield lambda frame: live.update(renderable(frame), refresh=True)
