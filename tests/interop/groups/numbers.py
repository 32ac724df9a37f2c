"""A producer that writes the numbers 0, 1, 2 … over all partitions until it is told to stop."""

import contextlib
import threading
from collections.abc import Iterator

import confluent_kafka as ck

_PAUSE_S = 0.01  # only the pace: about a hundred messages a second
_FLUSH_S = 120


class Numbers:
    """Number n goes to partition n % partitions. One thread writes; `stop` returns how many."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self.topic, self.partitions = topic, partitions
        self.count = 0
        self._failures: list[ck.KafkaError] = []
        self._producer = ck.Producer(
            {"bootstrap.servers": bootstrap, "linger.ms": 0, "enable.idempotence": True}
        )
        self._is_over = threading.Event()
        self._may_write = threading.Lock()
        self._thread = threading.Thread(target=self._flow, daemon=True)

    def write(self, count: int) -> None:
        """Write `count` more numbers and return when they are acknowledged."""
        for _ in range(count):
            self._write_one()
        self._flush()

    def start(self) -> None:
        """Keep writing in the background."""
        self._thread.start()

    @contextlib.contextmanager
    def held(self) -> Iterator[int]:
        """Write nothing for a while; gives how many numbers there are."""
        with self._may_write:
            self._flush()
            yield self.count

    def stop(self) -> int:
        """Stop writing; return how many numbers were acknowledged, which is all of them."""
        self._is_over.set()
        if self._thread.is_alive():
            self._thread.join()
        self._flush()
        return self.count

    def _flow(self) -> None:
        while not self._is_over.wait(_PAUSE_S):
            with self._may_write:
                self._write_one()

    def _write_one(self) -> None:
        self._producer.produce(
            self.topic,
            str(self.count).encode(),
            partition=self.count % self.partitions,
            on_delivery=lambda error, _: self._failures.append(error) if error else None,
        )
        self._producer.poll(0)
        self.count += 1

    def _flush(self) -> None:
        left = self._producer.flush(_FLUSH_S)
        assert (left, self._failures) == (0, [])
