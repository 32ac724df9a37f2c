"""What a node's directory holds before its first start: server.properties, and formatted storage.

Everything but the node's own place is the same on every node: topic defaults are read by the
controllers as well, and a broker that alone knows them makes topics of one replica.

Kafka's StorageTool formats, which costs seconds of a JVM. What it writes is the same on every
node of a cluster, but for the node's id, the directory's id and timestamps: so it runs for one
node, and the others get a copy with ids of their own.
"""

import re
import shutil
import subprocess
from pathlib import Path

from headrace.kafka.errors import NodeError
from headrace.kafka.jvm import SMALL_JVM, java_command, java_environment, use_archive, write_log4j
from headrace.kafka.layout import BROKER, CONTROLLER, HOST, Layout, NodeLayout, random_cluster_id

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
_FORMAT_TIMEOUT_S = 120
_FORMAT_TOOL = "kafka.tools.StorageTool"
_EXCEPTION = re.compile(r'^Exception in thread "main" [\w.$]+: ', re.MULTILINE)
_META, _BOOTSTRAP = "meta.properties", "bootstrap.checkpoint"


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


def is_formatted(data_directory: Path) -> bool:
    """Whether Kafka would take the directory as it is."""
    return (data_directory / _META).exists()


def format_storage(properties_file: Path, data_directory: Path, layout: Layout) -> None:
    """Format what `properties_file` names, as its own directory sees it.

    A bad setting is found here, in Kafka's words.
    """
    # -g: what an interrupted run has formatted already is left as it is.
    arguments = ("format", "-t", layout.cluster_id, "-g", "-c", properties_file)
    command = java_command(
        _FORMAT_TOOL,
        *arguments,
        flags=[*SMALL_JVM, *use_archive(layout.version)],
        log4j_file=write_log4j(properties_file.parent),
        version=layout.version,
    )
    try:
        answer = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=_FORMAT_TIMEOUT_S,
            env=java_environment(),
            cwd=properties_file.parent,
        )
    except subprocess.TimeoutExpired as error:
        raise NodeError(f"formatting {data_directory} took over {_FORMAT_TIMEOUT_S} s") from error
    if answer.returncode:
        raise NodeError(
            f"Kafka's StorageTool could not format {data_directory}: "
            f"{_reason(answer.stderr or answer.stdout)}"
        )


def format_like(formatted: Path, data_directory: Path, node_id: int) -> None:
    """Format a directory as `formatted` is, which belongs to another node of the same cluster."""
    own = {"node.id": str(node_id), "directory.id": random_cluster_id()}
    lines = (formatted / _META).read_text("utf-8").splitlines()
    named = {line.partition("=")[0] for line in lines}
    if not own.keys() <= named:
        raise NodeError(f"{formatted / _META} does not name {' and '.join(own)}")
    data_directory.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(formatted / _BOOTSTRAP, data_directory / _BOOTSTRAP)
    temporary = data_directory / f"{_META}.tmp"
    with temporary.open("w", encoding="utf-8") as file:
        for line in lines:
            name = line.partition("=")[0]
            file.write(f"{name}={own[name]}\n" if name in own else f"{line}\n")
    temporary.rename(data_directory / _META)  # last: it says that the directory is formatted


def _reason(text: str) -> str:
    """What the tool said, without Java's stack and class names."""
    lines = [line for line in text.strip().splitlines() if not line.startswith(("\tat ", "\t..."))]
    return _EXCEPTION.sub("", "\n".join(lines[-5:]))
