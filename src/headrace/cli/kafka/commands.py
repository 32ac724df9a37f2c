"""`headrace kafka`: clusters of real Apache Kafka on this machine, as a whole."""

from typing import Annotated

import typer

from headrace.cli.endings import tell
from headrace.cli.kafka import drill, nodes, status, tool, up
from headrace.cli.kafka.options import Dir, Name, open_cluster
from headrace.cli.terminal import Json, Yes, confirm, help_style, print_json, print_table
from headrace.kafka.cluster_names import DEFAULT_NAME, clusters_directory, forget, known_names

app = typer.Typer(
    help="Run clusters of real Apache Kafka on this machine.",
    no_args_is_help=True,
    rich_markup_mode=help_style(),
)
app.command(epilog=up.EPILOG)(up.up)


@app.command(epilog="Example: headrace kafka down")
def down(
    name: Name = DEFAULT_NAME,
    dir: Dir = None,
    grace: Annotated[
        float,
        typer.Option(metavar="SECONDS", min=0, help="How long nodes may take before SIGKILL."),
    ] = 60.0,
    is_json: Json = False,
) -> None:
    """Stop all nodes of a cluster cleanly; its data stays, and `up` starts it again."""
    cluster = open_cluster(name, dir)
    was_running = cluster.is_running
    cluster.down(grace)
    if is_json:
        print_json({"cluster": cluster.name, "stopped": was_running})
    else:
        print(f"cluster {cluster.name} {'is stopped' if was_running else 'was stopped already'}")


@app.command(epilog="Example: headrace kafka destroy --yes")
def destroy(
    name: Name = DEFAULT_NAME, dir: Dir = None, yes: Yes = False, is_json: Json = False
) -> None:
    """End all nodes of a cluster at once and remove it with all its data."""
    cluster = open_cluster(name, dir)
    confirm(f"Remove cluster {cluster.name} with all data in {cluster.directory}?", is_yes=yes)
    cluster.destroy()
    forget(cluster.name, cluster.directory)
    if cluster.directory.exists():
        tell(f"{cluster.directory} holds files that are not the cluster's; they are left")
    if is_json:
        print_json({"cluster": cluster.name, "destroyed": True})
    else:
        print(f"cluster {cluster.name} is gone")


@app.command("list", epilog="Example: headrace kafka list")
def list_(is_json: Json = False) -> None:
    """List the clusters of this machine that are known by their names."""
    clusters = [open_cluster(name, None) for name in known_names()]
    rows = [
        {
            "cluster": each.name,
            "version": each.version,
            "brokers": len(each.brokers),
            "controllers": each.layout.controller_count,
            "state": status.state_of(each),
            "bootstrap": each.bootstrap,
        }
        for each in clusters
    ]
    if is_json:
        for row in rows:
            print_json(row)
    elif rows:
        print_table(tuple(rows[0]), [tuple(row.values()) for row in rows])
    else:
        tell(f"no clusters in {clusters_directory()}; 'headrace kafka up' makes one")


app.command(epilog="Example: headrace kafka status")(status.status)
app.command(epilog="Example: headrace kafka kill 2")(nodes.kill)
app.command(epilog="Example: headrace kafka pause 2")(nodes.pause)
app.command(epilog="Example: headrace kafka resume 2")(nodes.resume)
app.command(epilog="Example: headrace kafka stop 2")(nodes.stop)
app.command(epilog="Example: headrace kafka start 2")(nodes.start)
app.command(epilog="Example: headrace kafka restart 2")(nodes.restart)
app.command(epilog="Example: headrace kafka logs 2 --lines 20")(nodes.logs)
app.command(epilog=tool.EPILOG, context_settings=tool.CONTEXT)(tool.tool)
app.command(epilog=drill.EPILOG)(drill.drill)
