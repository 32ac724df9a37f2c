"""Where a workload runs: one broker, its topics, and the clock on its CPU."""

import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from bench.clients import ClientResult, replay
from bench.driver import MeasuredBroker
from bench.errors import BenchError
from bench.requests import write_fetch_requests, write_produce_requests
from bench.topics import create_topic, delete_topic
from headrace.client.admin import Admin
from headrace.patience import Patience

_DELETION_TIMEOUT_S = 30
_POLL_S = 0.02
_OPENING_BATCHES = 3  # the first index entry comes with the second batch
_PREFIX = "bench-"
_numbers = itertools.count()


class Sample(NamedTuple):
    """One measured value of one row; CPU is the broker's, in seconds per million messages."""

    row: str
    value: float
    cpu_per_million: float | None = None


class Metered(NamedTuple):
    """What a client counted, and the CPU the broker spent meanwhile."""

    result: ClientResult
    broker_cpu_seconds: float


class BenchTopic(NamedTuple):
    """A topic that exists for one workload."""

    name: str
    topic_id: UUID
    partitions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One broker and how long each measurement on it lasts."""

    broker: MeasuredBroker
    admin: Admin
    scratch: Path
    seconds: float
    backlog_bytes: int
    backlog_messages: int
    is_warm_up: bool

    @contextmanager
    def topic(self, partitions: int = 1) -> Iterator[BenchTopic]:
        """Make a topic; afterwards delete it and, unless in a warm-up, let the disk rest."""
        name = f"{_PREFIX}{next(_numbers)}"
        yield BenchTopic(name, create_topic(self.admin, name, partitions), partitions)
        delete_topic(self.admin, name)
        if not self.is_warm_up:
            self.settle()

    def settle(self) -> None:
        """Wait until no deleted topic's files are left and nothing waits to be written."""
        patience = Patience(_DELETION_TIMEOUT_S, first_pause_s=_POLL_S, longest_pause_s=_POLL_S)
        if not patience.until(lambda: not any(self.broker.data_directory.glob(f"{_PREFIX}*"))):
            raise BenchError(f"{self.broker.name} did not delete its topics' files in time")
        os.sync()

    def produce_file(
        self, topic: BenchTopic, *, value_bytes: int, messages: int, acks: int = 1
    ) -> Path:
        """Write Produce requests for every partition of `topic`."""
        path = self.scratch / f"{topic.name}-{value_bytes}x{messages}.produce"
        write_produce_requests(
            path,
            topic=topic.name,
            partitions=topic.partitions,
            value_bytes=value_bytes,
            messages=messages,
            acks=acks,
        )
        return path

    def fetch_file(self, topic: BenchTopic) -> Path:
        """Write Fetch requests for every partition of `topic`."""
        path = self.scratch / f"{topic.name}.fetch"
        write_fetch_requests(path, topic_id=topic.topic_id, partitions=topic.partitions)
        return path

    def fill(self, topic: BenchTopic, *, value_bytes: int, messages: int, requests: int) -> None:
        """Append `requests` batches of `messages` and let the disk come to rest."""
        file = self.produce_file(topic, value_bytes=value_bytes, messages=messages)
        replay(self.broker.port, produce=file, connections=4, in_flight=5, count=requests)
        os.sync()

    def open_partitions(self, topic: BenchTopic, file: Path) -> None:
        """Write to every partition before the clock starts.

        Kafka's first batches in a partition fault in its 10 MiB index files, which for 200
        partitions takes seconds; a topic pays that once in its life.
        """
        count = topic.partitions * _OPENING_BATCHES
        replay(self.broker.port, produce=file, connections=4, in_flight=5, count=count)

    def meter(self, run: Callable[[], ClientResult]) -> Metered:
        """Run a client and see what CPU it cost the broker."""
        before = self.broker.cpu_seconds()
        result = run()
        return Metered(result, self.broker.cpu_seconds() - before)
