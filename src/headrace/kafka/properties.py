"""server.properties: the configuration of one node, from the layout of its cluster.

Everything but the node's own place is the same on every node: topic defaults are read by the
controllers as well, and a broker that alone knows them makes topics of one replica.
"""

import re
from pathlib import Path

from headrace.kafka.layout import BROKER, CONTROLLER, HOST, Layout, NodeLayout

# As many as most production clusters have; and what may be lost of them without a halt.
_REPLICATION_FACTOR = 3
_MIN_ISR = 2
# Kafka's 50 are for thousands of groups. 12 spread evenly over 1, 2, 3, 4 and 6 brokers, and a
# fail-over has fewer leaders to elect.
_INTERNAL_PARTITIONS = "12"
# Its 128 MiB by default do not fit into a small heap.
_DEDUPE_BUFFER_BYTES = str(16 * 1024 * 1024)


# What Java's reader takes for something else, in a name or in front of a value; see `_written`.
_NAMED = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f"}
_SPECIAL = re.compile(r"[\\\t\n\r\f]|[^ -~]")
_SPECIAL_IN_NAMES = re.compile(r"[\\\t\n\r\f :=#!]|[^ -~]")


def node_properties(layout: Layout, node: NodeLayout, data_name: str) -> dict[str, str]:
    """Return what Kafka is to be told about one node; the layout's own settings win.

    `data_name` is the data directory's name where the node runs. With the path before it a comma
    in that would part it in two.
    """
    return {
        "process.roles": ",".join(sorted(node.roles)),
        "node.id": str(node.id),
        "controller.quorum.voters": ",".join(
            f"{each.id}@{HOST}:{each.controller_port}"
            for each in layout.nodes
            if each.controller_port is not None
        ),
        **_listeners(node),
        "log.dirs": data_name,
        **_topic_defaults(layout.broker_count),
        "group.initial.rebalance.delay.ms": "0",
        "log.cleaner.dedupe.buffer.size": _DEDUPE_BUFFER_BYTES,
        **layout.settings,
    }


def _listeners(node: NodeLayout) -> dict[str, str]:
    client, controller = (
        f"PLAINTEXT://{HOST}:{node.port}",
        f"CONTROLLER://{HOST}:{node.controller_port}",
    )
    by_role = {BROKER: client, CONTROLLER: controller}
    listeners = {
        "listeners": ",".join(by_role[role] for role in sorted(node.roles)),
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    }
    if node.port is not None:
        listeners["advertised.listeners"] = client
    return listeners


def _topic_defaults(brokers: int) -> dict[str, str]:
    factor = str(min(_REPLICATION_FACTOR, brokers))
    min_isr = str(_MIN_ISR if brokers >= _REPLICATION_FACTOR else 1)
    defaults = {
        "default.replication.factor": factor,
        "min.insync.replicas": min_isr,
        "offsets.topic.replication.factor": factor,
        "transaction.state.log.replication.factor": factor,
        "transaction.state.log.min.isr": min_isr,
        "share.coordinator.state.topic.replication.factor": factor,
        "share.coordinator.state.topic.min.isr": min_isr,
    }
    if brokers > 1:
        defaults |= {
            "offsets.topic.num.partitions": _INTERNAL_PARTITIONS,
            "transaction.state.log.num.partitions": _INTERNAL_PARTITIONS,
            "share.coordinator.state.topic.num.partitions": _INTERNAL_PARTITIONS,
        }
    return defaults


def write_properties(properties: dict[str, str], path: Path) -> None:
    """Write them so that java.util.Properties reads the same: it takes every byte for Latin-1."""
    lines = (f"{_name(name)}={_value(value)}\n" for name, value in properties.items())
    path.write_text("".join(lines), "ascii")


def _name(text: str) -> str:
    return _SPECIAL_IN_NAMES.sub(_written, text)


def _value(text: str) -> str:
    escaped = _SPECIAL.sub(_written, text)
    return f"\\{escaped}" if escaped.startswith(" ") else escaped  # else it would be skipped


def _written(match: re.Match[str]) -> str:
    character = match[0]
    if character in _NAMED:
        return _NAMED[character]
    if " " <= character <= "~":
        return f"\\{character}"
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
