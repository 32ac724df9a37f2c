"""What the commands of `headrace kafka` share: which cluster is meant, facts of its nodes."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headrace.errors import HeadraceError
from headrace.kafka import cluster_names as named_clusters
from headrace.kafka.cluster_names import DEFAULT_NAME, has_cluster, known_names
from headrace.kafka.errors import ClusterError

if TYPE_CHECKING:
    from headrace.kafka.cluster import Cluster
    from headrace.kafka.node import Node


def cluster_names(incomplete: str) -> list[str]:
    """Names the shell completes: clusters of this machine."""
    return [name for name in known_names() if name.startswith(incomplete)]


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
    typer.Option("--dir", metavar="DIR", help="Its directory, if it is not known by its name."),
]
NodeId = Annotated[
    int,
    typer.Argument(metavar="NODE", help="The node's number.", autocompletion=_node_ids),
]


def place_of(name: str, directory: Path | None) -> Path:
    """The directory of the cluster that is meant."""
    return named_clusters.directory_of(name) if directory is None else directory


def open_cluster(name: str, directory: Path | None) -> "Cluster":
    """The cluster that is meant; ClusterError with the fix where there is none."""
    from headrace.kafka.cluster import Cluster

    place = place_of(name, directory)
    if has_cluster(place):
        cluster = Cluster.open(place)
        check_name_of(cluster, name if directory is not None and name != DEFAULT_NAME else None)
        return cluster
    if directory is not None:
        option = f" --dir {shlex.quote(str(place))}"
        raise ClusterError(f"there is no cluster in {place}; 'headrace kafka up{option}' makes one")
    others = f"; there are {', '.join(known_names())}" if known_names() else ""
    option = "" if name == DEFAULT_NAME else f" --name {name}"
    raise ClusterError(
        f"there is no cluster called {name}{others}; 'headrace kafka up{option}' makes it"
    )


def check_name_of(cluster: "Cluster", name: str | None) -> None:
    """ClusterError when somebody took the cluster of a directory for another."""
    if name is not None and name != cluster.name:
        raise ClusterError(
            f"the cluster in {cluster.directory} is called {cluster.name}, not {name}"
        )


def option_for(cluster: "Cluster") -> str:
    """How other commands have to name this cluster."""
    return named_clusters.option_for(cluster.name, cluster.directory)


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
