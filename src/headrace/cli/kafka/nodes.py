"""`headrace kafka kill|pause|resume|stop|start|restart|logs NODE`: one node of a cluster."""

import os
import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from headrace.cli.endings import CommandError, tell
from headrace.cli.kafka.options import (
    Dir,
    Name,
    NodeId,
    open_cluster,
    option_for,
)
from headrace.cli.terminal import Json, print_json
from headrace.kafka.cluster_names import DEFAULT_NAME

if TYPE_CHECKING:
    from headrace.kafka.node import Node

_RUNNING, _PAUSED, _STOPPED = "running", "paused", "stopped"
_FOLLOW_S = 0.2

Timeout = Annotated[
    float, typer.Option(metavar="SECONDS", min=1, help="How long it may take to start.")
]


def kill(node: NodeId, name: Name = DEFAULT_NAME, dir: Dir = None, is_json: Json = False) -> None:
    """End a node as a power cut would (SIGKILL)."""
    found = _running_node(node, name, dir)
    found.kill()
    _tell(found, "is killed", is_json=is_json)


def pause(node: NodeId, name: Name = DEFAULT_NAME, dir: Dir = None, is_json: Json = False) -> None:
    """Let a node stand still: a stalled machine, not a dead one (SIGSTOP)."""
    found = _running_node(node, name, dir)
    found.pause()
    _tell(found, "is paused", is_json=is_json)


def resume(node: NodeId, name: Name = DEFAULT_NAME, dir: Dir = None, is_json: Json = False) -> None:
    """Let a paused node go on (SIGCONT)."""
    found = _running_node(node, name, dir)
    was_paused = found.state == _PAUSED
    found.resume()
    _tell(found, "goes on" if was_paused else "was not paused", is_json=is_json)


def stop(node: NodeId, name: Name = DEFAULT_NAME, dir: Dir = None, is_json: Json = False) -> None:
    """Stop a node cleanly: it hands its partitions over first."""
    found = _running_node(node, name, dir)
    found.stop()
    _tell(found, "is stopped", is_json=is_json)


def start(
    node: NodeId,
    name: Name = DEFAULT_NAME,
    dir: Dir = None,
    timeout: Timeout = 120.0,
    is_json: Json = False,
) -> None:
    """Start a node again and wait until it serves."""
    found = open_cluster(name, dir).node(node)
    if found.state != _STOPPED:
        _tell(found, f"is {found.state} already", is_json=is_json)
        return
    started = time.monotonic()
    found.start(timeout)
    _tell(found, f"serves after {time.monotonic() - started:.1f} s", is_json=is_json)


def restart(
    node: NodeId,
    name: Name = DEFAULT_NAME,
    dir: Dir = None,
    timeout: Timeout = 120.0,
    is_json: Json = False,
) -> None:
    """Stop a node cleanly, start it again and wait until it serves."""
    found = open_cluster(name, dir).node(node)
    started = time.monotonic()
    found.restart(timeout)
    _tell(found, f"serves again after {time.monotonic() - started:.1f} s", is_json=is_json)


def logs(
    node: NodeId,
    name: Name = DEFAULT_NAME,
    dir: Dir = None,
    lines: Annotated[
        int, typer.Option("--lines", "-n", metavar="N", min=0, help="How many of the last lines.")
    ] = 50,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on with what is added, until Ctrl-C.")
    ] = False,
) -> None:
    """Print the end of a node's log.

    It has warnings and errors, and a line for each start. A file has 10 MB; three older ones are
    kept beside it.
    """
    path = open_cluster(name, dir).node(node).log_file
    if not path.exists() and not follow:
        tell(f"node {node} was never started: it has no log")
        return
    _print_log(path, lines, is_followed=follow)


def _print_log(path: Path, lines: int, *, is_followed: bool) -> None:
    file: TextIO | None = None
    try:
        if path.exists():
            file = path.open(encoding="utf-8", errors="replace")
            print("".join(deque(file, lines)), end="", flush=True)
        while is_followed:
            time.sleep(_FOLLOW_S)
            if file is not None:
                print(file.read(), end="", flush=True)
            if path.exists() and (file is None or not _is_same(file, path)):
                if file is not None:
                    print(file.read(), end="", flush=True)  # what came before it was rolled
                    file.close()
                file = path.open(encoding="utf-8", errors="replace")
    finally:
        if file is not None:
            file.close()


def _is_same(file: TextIO, path: Path) -> bool:
    """Whether `path` still is the file that is open, or a new one after the log was rolled."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return True  # between two files


def _running_node(node_id: int, name: str, directory: Path | None) -> "Node":
    cluster = open_cluster(name, directory)
    found = cluster.node(node_id)
    if found.state == _STOPPED:
        raise CommandError(
            f"node {node_id} does not run; "
            f"'headrace kafka start {node_id}{option_for(cluster)}' starts it"
        )
    return found


def _tell(node: "Node", what: str, *, is_json: bool) -> None:
    if is_json:
        print_json({"node": node.id, "state": node.state, "pid": node.pid})
    else:
        print(f"node {node.id} {what}")
