"""Names the shell completes from the broker: topics and groups, when it answers at once.

Completion must never get in the way: no broker, a slow one or any error completes nothing.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from headrace.cli.connection import Connection
from headrace.client.bus import BOOTSTRAP_VARIABLE
from headrace.errors import HeadraceError

_PATIENCE_S = 1.0


def topic_names(context: typer.Context, incomplete: str) -> list[str]:
    """Topics whose name starts with what was typed; internal ones only when asked for."""
    found = list[str]()
    with _silently():
        topics = _connection(context).admin().metadata().topics
        found = [name for name in topics if incomplete or not name.startswith("__")]
    return sorted(name for name in found if name.startswith(incomplete))


def group_names(context: typer.Context, incomplete: str) -> list[str]:
    """Groups whose name starts with what was typed."""
    found = list[str]()
    with _silently():
        found = [group.name for group in _connection(context).admin().list_groups().groups]
    return sorted(name for name in found if name.startswith(incomplete))


def _connection(context: typer.Context) -> Connection:
    typed = context.params
    return Connection(
        typed.get("bootstrap") or os.environ.get(BOOTSTRAP_VARIABLE),
        client_config=typed.get("client_config"),
        properties=typed.get("client_properties") or (),
        timeout_s=_PATIENCE_S,
    )


@contextmanager
def _silently() -> Iterator[None]:
    try:
        yield
    except (HeadraceError, OSError, ValueError):
        return
