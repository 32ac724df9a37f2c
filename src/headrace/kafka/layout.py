"""What a cluster on this machine consists of: its nodes with their roles and ports, its settings.

Written once to cluster.json when a cluster is made, and never changed: ports and roles are in
every node's configuration, in the clients', and in what the controllers have agreed on.
"""

import json
import random
import re
import socket
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from headrace.kafka.errors import ClusterError
from headrace.kafka.jars import KAFKA_VERSION
from headrace.kafka.jvm import SMALL_JVM

HOST = "127.0.0.1"
FILE_NAME = "cluster.json"
BROKER, CONTROLLER = "broker", "controller"
# Each is a Java process of about 300 MB; more is not a cluster but a way to stop a machine.
MAX_NODES = 20
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")  # it is the name of a directory
# Below the range Linux takes ports of outgoing connections from: a stopped cluster's stay free.
_PORTS = range(20_000, 32_000)
_PORT_ATTEMPTS = 200
_QUORUM = 3  # of the combined nodes: more voters make no laptop safer
# Chosen by the layout. Another value would part the nodes from what cluster.json says of them.
CHOSEN_SETTINGS = frozenset(
    {
        "process.roles",
        "node.id",
        "broker.id",
        "controller.quorum.voters",
        "controller.quorum.bootstrap.servers",
        "controller.listener.names",
        "listeners",
        "advertised.listeners",
        "log.dir",
        "log.dirs",
        "metadata.log.dir",
    }
)


@dataclass(frozen=True, kw_only=True)
class NodeLayout:
    """One node. `port` is None for a pure controller, `controller_port` for a pure broker."""

    id: int
    port: int | None
    controller_port: int | None

    @property
    def roles(self) -> frozenset[str]:
        has = {BROKER: self.port, CONTROLLER: self.controller_port}
        return frozenset(role for role, port in has.items() if port is not None)

    @property
    def ports(self) -> list[int]:
        return [port for port in (self.port, self.controller_port) if port is not None]


@dataclass(frozen=True, kw_only=True)
class Layout:
    """One cluster."""

    name: str
    version: str
    cluster_id: str
    nodes: tuple[NodeLayout, ...]
    settings: Mapping[str, str]
    jvm_flags: tuple[str, ...]

    @property
    def broker_count(self) -> int:
        return sum(node.port is not None for node in self.nodes)

    @property
    def controller_count(self) -> int:
        """How many nodes are controllers and nothing else."""
        return sum(node.port is None for node in self.nodes)


def plan(
    name: str,
    *,
    brokers: int,
    controllers: int = 0,
    version: str = KAFKA_VERSION,
    port: int = 0,
    settings: Mapping[str, str] | None = None,
    jvm_flags: Sequence[str] = SMALL_JVM,
) -> Layout:
    """Lay a cluster out: brokers from id 1, then the controllers; ports from `port` on."""
    check_name(name)
    if brokers < 1:
        raise ClusterError(f"{brokers} brokers: a cluster needs at least one")
    if controllers < 0:
        raise ClusterError(f"{controllers} controllers: take 0 to let brokers do their work")
    if brokers + controllers > MAX_NODES:
        raise ClusterError(
            f"{brokers + controllers} nodes are too many for one machine; {MAX_NODES} at most"
        )
    for key in settings or {}:
        if key in CHOSEN_SETTINGS:
            raise ClusterError(f"{key} is chosen by headrace for each node and cannot be set")
    voters = controllers or (_QUORUM if brokers >= _QUORUM else 1)
    ports = iter(choose_ports(brokers + voters, port))
    broker_ports = [next(ports) for _ in range(brokers)]
    nodes = [
        NodeLayout(
            id=number,
            port=broker_port,
            controller_port=next(ports) if not controllers and number <= voters else None,
        )
        for number, broker_port in enumerate(broker_ports, start=1)
    ]
    for number in range(brokers + 1, brokers + controllers + 1):
        nodes.append(NodeLayout(id=number, port=None, controller_port=next(ports)))
    return Layout(
        name=name,
        version=version,
        cluster_id=random_cluster_id(),
        nodes=tuple(nodes),
        settings=dict(settings or {}),
        jvm_flags=tuple(jvm_flags),
    )


def check_name(name: str) -> None:
    """Raise ClusterError unless a cluster may have this name."""
    if not is_name(name):
        raise ClusterError(
            f"{name!r} cannot name a cluster; take letters, digits, '.', '_' and '-', at most 100"
        )


def is_name(text: str) -> bool:
    """Whether a cluster may be called this."""
    return _NAME.fullmatch(text) is not None


def random_cluster_id() -> str:
    """Return an id as Kafka makes them: base64 of a UUID, never with a leading dash.

    StorageTool would take one that starts with a dash for an option.
    """
    while (text := urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")).startswith("-"):
        pass
    return text


def choose_ports(count: int, first: int = 0) -> list[int]:
    """Return `count` ports in a row that nobody listens on now: from `first` on, or anywhere."""
    if first:
        ports = range(first, first + count)
        if not 0 < first <= 65_536 - count:
            raise ClusterError(
                f"port {first}: {count} ports in a row are needed, all between 1 and 65535"
            )
        for port in ports:
            if not is_free(port):
                raise ClusterError(
                    f"port {port} is taken by another program; the cluster needs "
                    f"{first} to {ports[-1]}: choose another --port"
                )
        return [*ports]
    for _ in range(_PORT_ATTEMPTS):
        start = random.randrange(_PORTS.start, _PORTS.stop - count)
        ports = range(start, start + count)
        if all(map(is_free, ports)):
            return [*ports]
    raise ClusterError(f"no {count} free ports in a row were found; name the first with --port")


def is_free(port: int) -> bool:
    """Whether nobody listens on this port of the loopback address."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, port))
        except OSError:
            return False
    return True


def write(layout: Layout, directory: Path) -> None:
    """Write cluster.json; it is there whole or not at all."""
    text = json.dumps(asdict(layout), indent=2)
    temporary = directory / f".{FILE_NAME}.{uuid.uuid4().hex}"
    temporary.write_text(text + "\n", "utf-8")
    temporary.rename(directory / FILE_NAME)


def read(directory: Path) -> Layout:
    """Read cluster.json; FileNotFoundError where there is no cluster."""
    path = directory / FILE_NAME
    text = path.read_text("utf-8")
    try:
        found: dict[str, Any] = json.loads(text)
        nodes = tuple(NodeLayout(**node) for node in found.pop("nodes"))
        if not is_name(found["name"]):  # it becomes a path
            raise ValueError(f"{found['name']!r} cannot name a cluster")
        return Layout(**{**found, "nodes": nodes, "jvm_flags": tuple(found["jvm_flags"])})
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ClusterError(f"{path} is not what 'headrace kafka up' wrote: {error}") from error
