"""A whole Kafka cluster in one node that one process owns: for tests and measurements."""

import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from headrace.kafka import process
from headrace.kafka.cluster_node import PAUSED, RUNNING, STOPPED, Node
from headrace.kafka.errors import NodeError
from headrace.kafka.jars import KAFKA_VERSION
from headrace.kafka.jvm import SMALL_JVM
from headrace.kafka.layout import HOST, Layout, NodeLayout, random_cluster_id

__all__ = ["HOST", "PAUSED", "RUNNING", "STOPPED", "KafkaNode", "Node", "random_cluster_id"]


class KafkaNode:
    """A single-node cluster: `with KafkaNode(directory) as node: node.bootstrap`.

    Owned by one thread, and gone with its process. `settings` are added to server.properties
    and win over the node's own. `jvm_flags` choose between quick to start (the default, which
    also uses the class-data archive) and fast (`BENCH_JVM`).
    """

    def __init__(
        self,
        directory: Path,
        *,
        port: int = 0,
        jvm_flags: Sequence[str] = SMALL_JVM,
        settings: Mapping[str, str] | None = None,
        version: str = KAFKA_VERSION,
    ) -> None:
        self.directory = directory.absolute()
        self.data_directory = self.directory / "data"
        self.log_file = self.directory / "kafka.log"
        self.port = port
        self.ready_seconds = 0.0
        self.process: subprocess.Popen[bytes] | None = None
        self._version, self._jvm_flags = version, tuple(jvm_flags)
        self._settings = dict(settings or {})
        self._node: Node | None = None

    @property
    def bootstrap(self) -> str:
        return f"{HOST}:{self.port}"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self, timeout_s: float = 120) -> None:
        """Format the directory if it is new, start the broker, return when it serves."""
        if self._node is not None:
            raise NodeError(f"the Kafka node in {self.directory} is already started")
        controller_port, port = process.free_ports(2)
        self.port = self.port or port
        place = NodeLayout(id=1, port=self.port, controller_port=controller_port)
        layout = Layout(
            name=self.directory.name,
            version=self._version,
            cluster_id=random_cluster_id(),
            nodes=(place,),
            settings=self._settings,
            jvm_flags=self._jvm_flags,
        )
        node = Node(self.directory, layout, place, is_tied=True)
        node.prepare()
        started = time.monotonic()
        node.start(timeout_s)
        self.ready_seconds = time.monotonic() - started
        self._node, self.process = node, node.process

    def stop(self, grace_s: float = 60) -> None:
        """Stop the broker cleanly, or by force when it takes longer than `grace_s`."""
        if self._node is not None:
            self._node.stop(grace_s)
            self._node = self.process = None

    def kill(self) -> None:
        """End the broker as a power cut would, as far as the process is concerned."""
        self.stop(grace_s=0)
