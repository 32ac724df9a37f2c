"""`headrace kafka status`: nodes, leaders, replicas in sync and behind, memory."""

from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli.endings import tell
from headrace.cli.kafka.options import (
    Dir,
    Name,
    node_facts,
    open_cluster,
)
from headrace.cli.terminal import (
    NONE,
    Json,
    human_bytes,
    print_facts,
    print_heading,
    print_json,
    print_table,
)
from headrace.client.errors import BusError
from headrace.kafka.cluster_names import DEFAULT_NAME

if TYPE_CHECKING:
    from headrace.client.cluster_questions import Replica
    from headrace.kafka.cluster import Cluster

_ASK_TIMEOUT_S = 10.0
_MOST_ROWS = 20  # more partitions than a screen has lines are for --partitions


def state_of(cluster: "Cluster") -> str:
    """`running`, `stopped`, or `partly` for anything between."""
    states = {node.state for node in cluster.nodes}
    return states.pop() if len(states) == 1 else "partly"


def status(
    name: Name = DEFAULT_NAME,
    dir: Dir = None,
    partitions: Annotated[
        bool,
        typer.Option("--partitions", help="All partitions, not only those that lack replicas."),
    ] = False,
    is_json: Json = False,
) -> None:
    """Show a cluster: its nodes and their memory, leaders, replicas in sync and their lag.

    A replica's lag is in messages behind the leader; a node that does not answer shows none.
    """
    cluster = open_cluster(name, dir)
    controller, replicas = _ask(cluster)
    nodes = [_node(each, replicas) for each in map(node_facts, cluster.nodes)]
    if is_json:
        print_json(
            {
                "cluster": cluster.name,
                "version": cluster.version,
                "state": state_of(cluster),
                "bootstrap": cluster.bootstrap,
                "directory": str(cluster.directory),
                "active_controller": controller,
                "nodes": nodes,
                "partitions": [each._asdict() for each in replicas],
            }
        )
        return
    print_heading(f"{cluster.name}: Kafka {cluster.version}, {state_of(cluster)}")
    _print_nodes(nodes, controller)
    print()
    _print_facts(cluster, replicas)
    wanted = [each for each in replicas if partitions or each.is_under_replicated]
    if wanted:
        print()
        _print_partitions(wanted if partitions else wanted[:_MOST_ROWS])
    if not partitions and len(wanted) > _MOST_ROWS:
        print(f"… and {len(wanted) - _MOST_ROWS} more; --partitions shows all")


def _ask(cluster: "Cluster") -> tuple[int | None, list["Replica"]]:
    if not any(node.state == "running" for node in cluster.brokers):
        return None, []
    try:
        found = cluster.replicas(_ASK_TIMEOUT_S)
    except BusError as error:
        tell(str(error))
        return None, []
    try:
        return cluster.active_controller(_ASK_TIMEOUT_S), found
    except BusError:
        tell("no active controller was found; too few controllers run, or one is being elected")
        return None, found


def _node(facts: dict[str, object], replicas: list["Replica"]) -> dict[str, object]:
    number = facts["node"]
    held = [each for each in replicas if number in each.replicas]
    lags = [each.lag_by_node[number] for each in held if number in each.lag_by_node]
    return {
        **facts,
        "leads": sum(each.leader == number for each in replicas),
        "replicas": len(held),
        "in_sync": sum(number in each.isr for each in held),
        "lag": sum(lags) if lags else None,
    }


def _print_nodes(nodes: list[dict[str, object]], controller: int | None) -> None:
    columns = ("node", "roles", "state", "pid", "port", "memory", "leads", "in sync", "lag")
    rows = []
    for each in nodes:
        roles = ", ".join(map(str, each["roles"])) if isinstance(each["roles"], list) else ""
        memory = each["memory_bytes"]
        rows.append(
            (
                each["node"],
                roles + (" (active)" if each["node"] == controller else ""),
                each["state"],
                _or_none(each["pid"]),
                _or_none(each["port"]),
                human_bytes(memory) if isinstance(memory, int) else NONE,
                each["leads"],
                f"{each['in_sync']} of {each['replicas']}",
                _or_none(each["lag"]),
            )
        )
    print_table(columns, rows, numbers=set(columns) - {"roles", "state"})


def _print_facts(cluster: "Cluster", replicas: list["Replica"]) -> None:
    facts: dict[str, object] = {"bootstrap": cluster.bootstrap, "directory": cluster.directory}
    if replicas:
        lacking = sum(each.is_under_replicated for each in replicas)
        leaderless = sum(each.leader is None for each in replicas)
        facts["partitions"] = (
            f"{len(replicas)}, {lacking} under-replicated, {leaderless} without a leader"
        )
    print_facts(facts)


def _print_partitions(replicas: list["Replica"]) -> None:
    columns = ("topic", "partition", "leader", "replicas", "isr", "lag")
    print_table(
        columns,
        [
            (
                each.topic,
                each.partition,
                _or_none(each.leader),
                ",".join(map(str, each.replicas)),
                ",".join(map(str, each.isr)),
                " ".join(f"{node}:{lag}" for node, lag in each.lag_by_node.items() if lag) or NONE,
            )
            for each in replicas
        ],
        numbers=("partition", "leader"),
    )


def _or_none(value: object) -> object:
    return NONE if value is None else value
