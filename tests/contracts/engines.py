"""The engines a bus can run on, each as the tests may treat it: reach it, kill it, stop its clock.

Invariant: no method does more for one engine than for another, and the settings are the same.
"""

import contextlib
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from headrace.kafka.cluster import Cluster, running_cluster
from headrace.testing import BrokerProcess, broker_process

# What Kafka does every few seconds or minutes, done at once: a test waits for it.
SETTINGS = {
    "log.retention.check.interval.ms": "200",
    "log.initial.task.delay.ms": "200",
    "log.cleaner.backoff.ms": "200",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "500",
    "group.consumer.min.session.timeout.ms": "500",
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "200",
    "group.consumer.assignment.interval.ms": "0",
    # Fifty of them, as by default, take longer to come back than the whole test.
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
}


class Engine(Protocol):
    """What runs the bus."""

    brokers: int

    @property
    def bootstrap(self) -> str:
        """For `bootstrap.servers`; the same after a restart."""

    def kill(self) -> None:
        """kill -9 every process of it."""

    def start(self) -> None:
        """Start it again on the same data and the same ports; return when it serves."""

    def pause(self) -> None:
        """Stop its processes as a stalled machine would: connections stay, nobody answers."""

    def resume(self) -> None:
        """Let them go on, with all that has arrived in the meantime."""


class EmbeddedEngine:
    """`headrace serve` in a process of its own, on disk."""

    brokers = 1

    def __init__(self, directory: Path, settings: dict[str, str]) -> None:
        self._directory = directory
        self._settings = {name.replace(".", "_"): value for name, value in settings.items()}
        self._port = 0
        self._run = contextlib.ExitStack()
        self._broker: BrokerProcess
        self.start()

    @property
    def bootstrap(self) -> str:
        return self._broker.bootstrap

    def kill(self) -> None:
        self._run.close()

    def start(self) -> None:
        running = broker_process(self._directory, port=self._port, **self._settings)
        self._broker = self._run.enter_context(running)
        self._port = self._broker.port

    def pause(self) -> None:
        self._broker.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._broker.process.send_signal(signal.SIGCONT)


class KafkaEngine:
    """Nodes of Apache Kafka; what happens to one happens to all of them."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.brokers = len(cluster.brokers)

    @property
    def bootstrap(self) -> str:
        return self._cluster.bootstrap

    def kill(self) -> None:
        for node in self._cluster.nodes:
            node.kill()

    def start(self) -> None:
        self._cluster.up()

    def pause(self) -> None:
        for node in self._cluster.nodes:
            node.pause()

    def resume(self) -> None:
        for node in self._cluster.nodes:
            node.resume()


# How many brokers each of Kafka's engines has.
_KAFKA = {"kafka": 1, "cluster": 3}


@contextlib.contextmanager
def running_engine(kind: str, directory: Path, **more: str) -> Iterator[Engine]:
    """Run the engine of this name for the time of the block; `more` are settings as keywords."""
    settings = {**SETTINGS, **{name.replace("_", "."): value for name, value in more.items()}}
    if brokers := _KAFKA.get(kind):
        with running_cluster(directory, brokers=brokers, settings=settings) as cluster:
            yield KafkaEngine(cluster)
    else:
        engine = EmbeddedEngine(directory, settings)
        try:
            yield engine
        finally:
            engine.kill()
