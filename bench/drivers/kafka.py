"""Apache Kafka as its own start script runs it: 1 GB heap, G1, default settings."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from bench.driver import MeasuredBroker
from headrace.java.installation import find_java
from headrace.kafka.jars import kafka_jars
from headrace.kafka.jvm import BENCH_JVM
from headrace.kafka.node import KafkaNode

_SETTINGS = {
    # Kafka's default again, which KafkaNode lowers for small heaps.
    "log.cleaner.dedupe.buffer.size": str(128 * 1024 * 1024),
    # Deleted topics must be gone before the next measurement starts; defaults 60 s and 30 s.
    "log.segment.delete.delay.ms": "200",
    "log.initial.task.delay.ms": "200",
}
_DURABLE = {"log.flush.interval.messages": "1"}


class KafkaDriver:
    """Real Kafka. Its page-cache meaning of acks=all is the default, fsync an option."""

    name = "kafka"
    has_jit = True

    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        self._settings = dict(settings or {})

    def prepare(self, directory: Path) -> None:
        find_java()
        kafka_jars()

    @contextmanager
    def running(self, directory: Path, *, is_durable: bool) -> Iterator[MeasuredBroker]:
        settings = _SETTINGS | (_DURABLE if is_durable else {}) | self._settings
        with KafkaNode(directory, jvm_flags=BENCH_JVM, settings=settings) as node:
            assert node.process is not None
            yield MeasuredBroker(
                name=self.name,
                port=node.port,
                pid=node.process.pid,
                ready_seconds=node.ready_seconds,
                data_directory=node.data_directory,
            )
