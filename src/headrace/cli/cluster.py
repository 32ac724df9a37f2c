"""`headrace cluster`: the brokers, what they are, what they can do, and how they are."""

from typing import NamedTuple

from headrace.cli.connection import Connection, connects
from headrace.cli.terminal import NONE, Json, print_facts, print_json, print_table
from headrace.client.admin import Admin
from headrace.client.descriptions import Metadata

EPILOG = "Example: headrace cluster"

# The first release of Apache Kafka with this version of this API, newest first.
_FETCH, _PRODUCE, _SHARE_ACKNOWLEDGE = 1, 0, 79
_RELEASES = (
    ("4.2", _SHARE_ACKNOWLEDGE, 2),
    ("4.1", _FETCH, 18),
    ("4.0", _PRODUCE, 12),
    ("3.9", _FETCH, 17),
    ("3.7", _FETCH, 16),
    ("3.5", _FETCH, 15),
    ("3.1", _FETCH, 13),
    ("2.7", _FETCH, 12),
    ("2.3", _FETCH, 11),
)
# What a client can do, by the API it cannot do without.
_ABILITIES = {
    "classic groups": 11,  # JoinGroup
    "consumer groups (KIP-848)": 68,  # ConsumerGroupHeartbeat
    "transactions": 24,  # AddPartitionsToTxn
    "share groups": 78,  # ShareFetch
}

ApiRanges = dict[int, tuple[int, int]]  # oldest and newest version by API key


class Health(NamedTuple):
    """Partitions that lack copies, and those that nobody leads."""

    partition_count: int
    under_replicated: list[str]
    offline: list[str]


@connects
def cluster(is_json: Json = False, *, connection: Connection) -> None:
    """Show the cluster: its brokers, what they are and can do, and partitions in trouble."""
    admin = connection.admin()
    metadata = admin.metadata()
    described = admin.describe_cluster()
    ranges = admin.api_versions()
    health = _health(metadata)
    controller = described.controller_id
    software = _software(admin, metadata, ranges)
    abilities = {name: key in ranges for name, key in _ABILITIES.items()} if ranges else None
    nodes = [
        {"id": node.id, "host": node.host, "port": node.port, "rack": node.rack}
        for node in described.brokers
    ]
    if is_json:
        print_json(
            {
                "cluster_id": described.cluster_id,
                "controller": controller,
                "software": software,
                "nodes": nodes,
                "abilities": abilities,
                **health._asdict(),
                "api_versions": {key: list(both) for key, both in (ranges or {}).items()},
            }
        )
        return
    print_facts(
        {
            "cluster id": described.cluster_id,
            "controller": NONE if controller is None else controller,
            "software": software,
            **{name: "yes" if is_able else "no" for name, is_able in (abilities or {}).items()},
            "partitions": health.partition_count,
            "under-replicated": _in_trouble(health.under_replicated),
            "offline": _in_trouble(health.offline),
        }
    )
    print()
    print_table(
        ("broker", "host", "port", "rack"),
        [(node["id"], node["host"], node["port"], node["rack"] or NONE) for node in nodes],
        numbers=("broker", "port"),
    )


def release_of(ranges: ApiRanges) -> str:
    """The oldest release of Apache Kafka that has these API versions."""
    for release, key, version in _RELEASES:
        if ranges.get(key, (0, -1))[1] >= version:
            return f"{release} or later"
    return "before 2.3"


def _software(admin: Admin, metadata: Metadata, ranges: ApiRanges | None) -> str:
    """What it seems to be: there is no field in Kafka's protocol that says so."""
    level = f"API versions of Kafka {release_of(ranges)}" if ranges else "API versions unknown"
    broker_id = str(min(metadata.brokers, default=0))
    configs = admin.configs("broker", broker_id)
    if any(config.name.startswith("headrace.") for config in configs):
        return f"headrace ({level})"
    if metadata.cluster_id.startswith("redpanda."):
        return f"Redpanda ({level})"
    return f"Apache Kafka or alike ({level})"


def _health(metadata: Metadata) -> Health:
    partitions = {
        f"{name}-{number}": partition
        for name, topic in sorted(metadata.topics.items())
        for number, partition in topic.partitions.items()
    }
    return Health(
        len(partitions),
        [name for name, each in partitions.items() if each.is_under_replicated],
        [name for name, each in partitions.items() if each.leader is None],
    )


def _in_trouble(names: list[str]) -> str:
    shown = ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
    return f"{len(names)} ({shown})" if names else "0"
