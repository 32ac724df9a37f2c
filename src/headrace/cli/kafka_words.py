"""What the commands of `headrace kafka` share: which cluster is meant, errors as sentences."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import platformdirs
import typer

from headrace.cli.output import CommandError, ending_well
from headrace.errors import ClusterError, HeadraceError

if TYPE_CHECKING:
    from headrace.kafka.cluster import Cluster
    from headrace.kafka.cluster_node import Node

VARIABLE = "HEADRACE_KAFKA_DIR"
DEFAULT_NAME = "default"


def clusters_directory() -> Path:
    """Where clusters lie by their names: HEADRACE_KAFKA_DIR, or the platform's place."""
    given = os.environ.get(VARIABLE)
    return Path(given) if given else Path(platformdirs.user_data_dir("headrace")) / "kafka"


def cluster_names(incomplete: str) -> list[str]:
    """Names the shell completes: clusters of this machine."""
    return [name for name in known_names() if name.startswith(incomplete)]


def known_names() -> list[str]:
    """The names of the clusters that lie in their usual place."""
    return sorted(path.parent.name for path in clusters_directory().glob("*/cluster.json"))


def _node_ids(context: typer.Context, incomplete: str) -> list[str]:
    try:
        cluster = open_cluster(context.params.get("name") or DEFAULT_NAME, context.params["dir"])
    except (HeadraceError, KeyError):  # completion must never get in the way
        return []
    return [str(node.id) for node in cluster.nodes if str(node.id).startswith(incomplete)]


Name = Annotated[
    str,
    typer.Option("--name", metavar="CLUSTER", help="Which cluster.", autocompletion=cluster_names),
]
Dir = Annotated[
    Path | None,
    typer.Option("--dir", metavar="DIR", help="Its directory, if it has not its usual place."),
]
NodeId = Annotated[
    int,
    typer.Argument(metavar="NODE", help="The node's number.", autocompletion=_node_ids),
]


@contextmanager
def in_our_words() -> Iterator[None]:
    """Errors of Kafka and its clusters end a command with their sentence."""
    with ending_well():
        try:
            yield
        except CommandError:
            raise
        except HeadraceError as error:
            raise CommandError(str(error)) from error


def place_of(name: str, directory: Path | None) -> Path:
    """The directory of the cluster that is meant."""
    from headrace.kafka.layout import check_name

    if directory is not None:
        return directory
    check_name(name)
    return clusters_directory() / name


def open_cluster(name: str, directory: Path | None) -> "Cluster":
    """The cluster that is meant; ClusterError with the fix where there is none."""
    from headrace.kafka.cluster import Cluster
    from headrace.kafka.layout import FILE_NAME

    place = place_of(name, directory)
    if (place / FILE_NAME).exists():
        return Cluster.open(place)
    if directory is not None:
        raise ClusterError(
            f"there is no cluster in {place}; 'headrace kafka up --dir {place}' makes one"
        )
    others = f"; there are {', '.join(known_names())}" if known_names() else ""
    option = "" if name == DEFAULT_NAME else f" --name {name}"
    raise ClusterError(
        f"there is no cluster called {name}{others}; 'headrace kafka up{option}' makes it"
    )


def node_facts(node: "Node") -> dict[str, object]:
    """What can be said of a node without asking Kafka."""
    return {
        "node": node.id,
        "roles": sorted(node.roles),
        "state": node.state,
        "pid": node.pid,
        "port": node.port,
        "memory_bytes": node.memory_bytes,
    }
