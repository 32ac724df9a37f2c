"""`headrace kafka up`: make a cluster or start it again, and wait until it serves."""

import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Any, Self

import typer

from headrace.cli.assignments import parse_assignments
from headrace.cli.endings import UsageError
from headrace.cli.kafka.options import (
    Dir,
    check_name_of,
    cluster_names,
    node_facts,
    option_for,
    place_of,
)
from headrace.cli.terminal import Json, print_facts, print_json
from headrace.errors import EngineError
from headrace.kafka.cluster_names import (
    DEFAULT_NAME,
    check_free,
    forget,
    forget_stale,
    has_cluster,
    remember,
)
from headrace.kafka.errors import ClusterError

if TYPE_CHECKING:
    from headrace.kafka.cluster import Cluster, UpProgress

EPILOG = "Example: headrace kafka up --brokers 3"
_BROKERS = 3
_NEWEST = "4.3.1"
NewName = Annotated[
    str | None,
    typer.Option(
        "--name",
        metavar="CLUSTER",
        help="Which cluster; with --dir, what other commands are to call it.",
        autocompletion=cluster_names,
        show_default=DEFAULT_NAME,
    ),
]


def up(
    brokers: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Number of brokers.", show_default=str(_BROKERS)),
    ] = None,
    controllers: Annotated[
        int | None,
        typer.Option(
            metavar="M",
            min=0,
            help="Number of controllers of their own; 0: brokers are controllers too.",
            show_default="0",
        ),
    ] = None,
    name: NewName = None,
    dir: Dir = None,
    version: Annotated[
        str | None,
        typer.Option("--version", metavar="4.x", help="Version of Kafka.", show_default=_NEWEST),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            metavar="P",
            min=1,
            max=65535,
            help="First of the ports, which are in a row.",
            show_default="free ones",
        ),
    ] = None,
    set: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE", help="A setting of Kafka's for every node; may be repeated."
        ),
    ] = None,
    timeout: Annotated[
        float,
        typer.Option(metavar="SECONDS", min=1, help="How long a node may take to start."),
    ] = 120.0,
    is_json: Json = False,
) -> None:
    """Start a cluster of real Apache Kafka, made on the first call, and wait until it serves.

    It goes on running when the command is done, until `headrace kafka down`; its data stays, and
    `up` starts it again. Needs Java 17; Kafka's jars are fetched once (46 MB).
    """
    wanted = {
        "brokers": brokers,
        "controllers": controllers,
        "version": _known(version),
        "port": port,
        "settings": parse_assignments(set) if set else None,
    }
    forget_stale(name or DEFAULT_NAME)
    place = place_of(name or DEFAULT_NAME, dir)
    if name is not None:
        check_free(name, place)
    cluster, is_new = _find_or_make(name, place, wanted)
    started = time.monotonic()
    was_up = all(node.state == "running" for node in cluster.nodes)
    try:
        if name is not None:
            remember(name, cluster.directory)
        with _sigterm_as_ctrl_c(), _ProgressView(cluster.version) as view:
            cluster.up(timeout, view.show)
    except BaseException:
        # Nothing is kept of a cluster that never was one, so that the next try is free.
        if is_new and not any(node.is_formatted for node in cluster.nodes):
            cluster.destroy()
            forget(cluster.name, cluster.directory)
        raise
    _tell(cluster, is_json=is_json, was_up=was_up, seconds=time.monotonic() - started)


@contextmanager
def _sigterm_as_ctrl_c() -> Iterator[None]:
    """A SIGTERM, too, is to stop what was started."""
    former = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, former)


def _known(version: str | None) -> str | None:
    from headrace.kafka.jars import find_version

    try:
        return None if version is None else find_version(version)
    except EngineError as error:
        raise UsageError(f"--version {version}: {error}") from error


def _find_or_make(
    name: str | None, place: Path, wanted: Mapping[str, Any]
) -> tuple["Cluster", bool]:
    from headrace.kafka.cluster import Cluster

    given = {key: value for key, value in wanted.items() if value is not None}
    if not has_cluster(place):
        new = {"brokers": _BROKERS, **given}
        return Cluster.create(place, name or DEFAULT_NAME, **new), True
    cluster = Cluster.open(place)
    check_name_of(cluster, name)
    layout = cluster.layout
    made = {
        "brokers": layout.broker_count,
        "controllers": layout.controller_count,
        "version": layout.version,
        "port": cluster.nodes[0].port,
        "settings": dict(layout.settings),
    }
    for key, value in given.items():
        if value != made[key]:
            option = "set" if key == "settings" else key
            raise ClusterError(
                f"cluster {layout.name} is there with --{option} {_text_of(made[key])}, not "
                f"{_text_of(value)}: make another with --name, or remove this one with its data "
                f"by 'headrace kafka destroy{option_for(cluster)}'"
            )
    return cluster, False


def _text_of(value: object) -> str:
    if isinstance(value, Mapping):
        return " ".join(f"{key}={each}" for key, each in value.items()) or "nothing"
    return str(value)


def _tell(cluster: "Cluster", *, is_json: bool, was_up: bool, seconds: float) -> None:
    if is_json:
        print_json(
            {
                "cluster": cluster.name,
                "version": cluster.version,
                "bootstrap": cluster.bootstrap,
                "directory": str(cluster.directory),
                "was_up": was_up,
                "seconds": round(seconds, 3),
                "nodes": [node_facts(node) for node in cluster.nodes],
            }
        )
        return
    own = cluster.layout.controller_count
    sizes = _count(len(cluster.brokers), "broker") + (
        f" and {_count(own, 'controller')}" if own else ""
    )
    how = "was up already" if was_up else f"is up after {seconds:.1f} s"
    print(f"cluster {cluster.name} {how}: Kafka {cluster.version}, {sizes}")
    print_facts({"bootstrap": cluster.bootstrap, "directory": cluster.directory})
    option = option_for(cluster)
    print("\nUse it:")
    for line in _examples(cluster, option):
        print(f"  {line}")


def _examples(cluster: "Cluster", option: str) -> Sequence[str]:
    return (
        f"export HEADRACE_BOOTSTRAP={cluster.bootstrap}",
        "headrace topics create orders --partitions 3",
        f"headrace kafka status{option}",
        f"headrace kafka drill{option}"
        if len(cluster.brokers) >= _BROKERS
        else f"headrace kafka tool{option} topics --describe",
        f"headrace kafka down{option}",
    )


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


class _ProgressView:
    """A bar on stderr while it is entered, where that is a terminal: bytes, then nodes."""

    def __init__(self, version: str) -> None:
        self._version = version
        self._bar: Any = None
        self._task: Any = None
        self._step = ""

    def __enter__(self) -> Self:
        from rich.console import Console

        console = Console(stderr=True)
        if console.is_terminal:
            from rich import progress

            self._bar = progress.Progress(
                progress.SpinnerColumn(),
                progress.TextColumn("{task.description}"),
                progress.BarColumn(30),
                progress.TextColumn("{task.fields[amount]}"),
                progress.TimeElapsedColumn(),
                console=console,
                transient=True,
            )
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def show(self, progress: "UpProgress") -> None:
        """Show where it is; called from several threads while jars come."""
        if self._bar is None:
            return
        done, total = progress.done, progress.total
        if progress.step != self._step:
            if self._task is not None:
                self._bar.remove_task(self._task)
            words = {
                "jars": f"fetching Kafka {self._version}",
                "format": "formatting nodes",
                "start": "starting nodes",
                "wait": "waiting for brokers",
            }
            self._task = self._bar.add_task(words[progress.step], total=total, amount="")
            self._step = progress.step
        is_bytes = progress.step == "jars"
        amount = f"{done / 1e6:.0f} of {total / 1e6:.0f} MB" if is_bytes else f"{done} of {total}"
        self._bar.update(self._task, completed=done, total=total, amount=amount)
