"""`headrace topics`: create, list, describe, alter and delete topics."""

from collections.abc import Iterable
from typing import Annotated

import typer

from headrace.cli.assignments import parse_assignments
from headrace.cli.completion import topic_names
from headrace.cli.connection import Connection, connects
from headrace.cli.endings import EXIT_FAILED, UsageError, tell, tell_each
from headrace.cli.terminal import (
    NONE,
    Json,
    Yes,
    confirm,
    help_style,
    human_bytes,
    print_facts,
    print_heading,
    print_json,
    print_table,
)
from headrace.cli.topics.description import (
    TopicFacts,
    describe_topics,
)
from headrace.client.admin import BROKERS_DEFAULT
from headrace.client.descriptions import Config

app = typer.Typer(
    help="Create, list, describe, alter and delete topics.",
    no_args_is_help=True,
    rich_markup_mode=help_style(),
)

_BROKERS = -1  # what Kafka takes for "as the broker is configured"

Name = Annotated[
    str, typer.Argument(metavar="TOPIC", help="Name of the topic.", autocompletion=topic_names)
]
Names = Annotated[
    list[str],
    typer.Argument(metavar="TOPIC", help="Names of the topics.", autocompletion=topic_names),
]
Configs = Annotated[
    list[str] | None,
    typer.Option("--config", metavar="NAME=VALUE", help="A config to set; may be repeated."),
]


@app.command(
    epilog="Example: headrace topics create orders --partitions 3 --config retention.ms=86400000"
)
@connects
def create(
    name: Annotated[str, typer.Argument(metavar="TOPIC", help="Name of the topic.")],
    partitions: Annotated[
        int | None,
        typer.Option(help="Number of partitions.", show_default="the broker's", min=1),
    ] = None,
    replication_factor: Annotated[
        int | None,
        typer.Option(help="Copies of each partition.", show_default="the broker's", min=1),
    ] = None,
    config: Configs = None,
    if_not_exists: Annotated[
        bool, typer.Option("--if-not-exists", help="Do nothing where the topic is there already.")
    ] = False,
    is_json: Json = False,
    *,
    connection: Connection,
) -> None:
    """Create a topic."""
    make = connection.admin().ensure_topic if if_not_exists else connection.admin().create_topic
    is_new = make(
        name,
        partitions or BROKERS_DEFAULT,
        replication_factor or BROKERS_DEFAULT,
        parse_assignments(config or ()),
    )
    if is_json:
        print_json({"topic": name, "created": is_new})
    else:
        print(f"created topic {name}" if is_new else f"topic {name} exists already")


@app.command("list", epilog="Example: headrace topics list --internal")
@connects
def list_(
    internal: Annotated[
        bool,
        typer.Option("--internal", help="Also Kafka's own topics, such as __consumer_offsets."),
    ] = False,
    is_json: Json = False,
    *,
    connection: Connection,
) -> None:
    """List the topics with their partitions, messages and bytes.

    Messages are counted as the distance between the first and the last offset: compaction and
    the markers of transactions make it an estimate.
    """
    topics = describe_topics(connection.admin(), has_internal=internal)
    if is_json:
        for topic in topics:
            print_json(_listed(topic))
        return
    print_table(
        ("topic", "partitions", "replicas", "messages", "size"),
        [
            (
                topic.name,
                len(topic.partitions),
                topic.replication_factor,
                topic.message_count,
                NONE if topic.size_bytes is None else human_bytes(topic.size_bytes),
            )
            for topic in topics
        ],
        numbers=("partitions", "replicas", "messages", "size"),
    )


@app.command(epilog="Example: headrace topics describe orders")
@connects
def describe(names: Names, is_json: Json = False, *, connection: Connection) -> None:
    """Show topics: leader, replicas and offsets of each partition, and the configs set on them."""
    admin = connection.admin()
    topics = {topic.name: topic for topic in describe_topics(admin, names=names, has_internal=True)}
    for number, (name, topic) in enumerate(topics.items()):
        configs = [config for config in admin.configs("topic", name) if config.is_set_on("topic")]
        if is_json:
            print_json(_described(topic, configs))
        else:
            print(end="\n" if number else "")
            _print_topic(topic, configs)
    absent = [name for name in names if name not in topics]
    for name in absent:
        tell(f"no topic is called {name}; 'headrace topics list' shows those there are")
    if absent:
        raise typer.Exit(EXIT_FAILED)


@app.command(epilog="Example: headrace topics alter orders --partitions 6 --config retention.ms=-1")
@connects
def alter(
    name: Name,
    partitions: Annotated[
        int | None, typer.Option(help="New number of partitions; it can only grow.", min=1)
    ] = None,
    config: Configs = None,
    delete_config: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A config to return to its default; may be repeated."),
    ] = None,
    is_json: Json = False,
    *,
    connection: Connection,
) -> None:
    """Add partitions to a topic, or set and delete its configs."""
    wanted: dict[str, str | None] = {**parse_assignments(config or ())}
    wanted |= dict.fromkeys(delete_config or ())
    if partitions is None and not wanted:
        raise UsageError("nothing to alter; name --partitions, --config or --delete-config")
    admin = connection.admin()
    if wanted:
        # The broker refuses a topic's config that it does not know.
        admin.alter_configs("topic", name, wanted)
    if partitions is not None:
        admin.grow_topic(name, partitions)
    if is_json:
        print_json({"topic": name, "partitions": partitions, "configs": wanted})
    else:
        print(f"altered topic {name}")


@app.command(epilog="Example: headrace topics delete orders --yes")
@connects
def delete(
    names: Names, yes: Yes = False, is_json: Json = False, *, connection: Connection
) -> None:
    """Delete topics with all their messages."""
    admin = connection.admin()
    confirm(f"Delete {', '.join(names)} with all messages?", is_yes=yes)

    def tell_deleted(name: str) -> None:
        if is_json:
            print_json({"topic": name, "deleted": True})
        else:
            print(f"deleted topic {name}")

    tell_each(admin.delete_topics(names), tell_deleted)


def _listed(topic: TopicFacts) -> dict[str, object]:
    return {
        "topic": topic.name,
        "partitions": len(topic.partitions),
        "replication_factor": topic.replication_factor,
        "messages": topic.message_count,
        "size_bytes": topic.size_bytes,
    }


def _described(topic: TopicFacts, configs: Iterable[Config]) -> dict[str, object]:
    return {
        **_listed(topic),
        "partitions": [each._asdict() for each in topic.partitions],
        "configs": {config.name: config.value for config in configs},
    }


def _print_topic(topic: TopicFacts, configs: Iterable[Config]) -> None:
    print_heading(topic.name)
    size = NONE if topic.size_bytes is None else human_bytes(topic.size_bytes)
    set_here = ", ".join(f"{config.name}={config.value}" for config in configs)
    print_facts({"messages": topic.message_count, "size": size, "configs": set_here or NONE})
    columns = ("partition", "leader", "replicas", "isr", "oldest", "end", "size")
    print_table(
        columns,
        [
            (
                each.partition,
                NONE if each.leader is None else each.leader,
                ",".join(map(str, each.replicas)),
                ",".join(map(str, each.isr)),
                NONE if each.oldest_offset is None else each.oldest_offset,
                NONE if each.end_offset is None else each.end_offset,
                NONE if each.size_bytes is None else human_bytes(each.size_bytes),
            )
            for each in topic.partitions
        ],
        numbers=set(columns) - {"replicas", "isr"},
    )
