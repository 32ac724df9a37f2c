"""The position of a run as a consumer group's, so that every tool for lag shows it.

Spark keeps its own position in the checkpoint; this is a copy for people. A commit that fails is
told once and tried again with the next batch.
"""

from collections.abc import Callable, Mapping
from typing import Any

from headrace.pipelines.bus import Bus

_REQUEST_TIMEOUT_S = 10.0


class GroupPositions:
    """Commits without waiting; while one commit is under way only the newest next one is kept."""

    def __init__(self, bus: Bus, group: str, tell: Callable[[str], None]) -> None:
        self._bus = bus
        self._group = group
        self._tell = tell
        self._admin: Any = None
        self._pending: Any = None
        self._next: Mapping[str, Mapping[str, int]] | None = None
        self._is_failing = False

    def commit(self, offsets: Mapping[str, Mapping[str, int]]) -> None:
        """Commit these next offsets, {topic: {partition: offset}}, as soon as it can be."""
        self._next = offsets
        self.go_on()

    def go_on(self) -> None:
        """Take note of a commit that is done and start the next."""
        if self._pending is not None and self._pending.done():
            self._note_result()
        if self._pending is None and self._next is not None:
            self._start(self._next)

    def finish(self, timeout_s: float = _REQUEST_TIMEOUT_S) -> None:
        """Wait for what is under way and for the last commit."""
        for _ in range(2):
            if self._pending is not None:
                self._note_result(timeout_s)
            self.go_on()

    def _start(self, offsets: Mapping[str, Mapping[str, int]]) -> None:
        from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, TopicPartition
        from confluent_kafka.admin import AdminClient

        self._next = None
        places = [
            TopicPartition(topic, int(partition), offset)
            for topic, partitions in offsets.items()
            for partition, offset in partitions.items()
        ]
        if not places:
            return
        try:
            if self._admin is None:
                config: Any = self._bus.client_config()
                self._admin = AdminClient(config)
            wanted = ConsumerGroupTopicPartitions(self._group, places)
            futures = self._admin.alter_consumer_group_offsets(
                [wanted], request_timeout=_REQUEST_TIMEOUT_S
            )
        except (KafkaException, ValueError) as error:
            self._failed(error)
            return
        self._pending = futures[self._group]

    def _note_result(self, timeout_s: float = 0) -> None:
        from concurrent.futures import TimeoutError as FutureTimeoutError

        from confluent_kafka import KafkaException

        try:
            result = self._pending.result(timeout_s)
            refused = [each.error for each in result.topic_partitions if each.error]
            if refused:
                self._failed(KafkaException(refused[0]))
            else:
                self._is_failing = False
        except (KafkaException, FutureTimeoutError) as error:
            self._failed(error)
        self._pending = None

    def _failed(self, error: BaseException) -> None:
        if self._is_failing:
            return
        self._is_failing = True
        first = error.args[0] if error.args else error
        reason = first.str() if hasattr(first, "str") else str(first) or "no answer"
        self._tell(
            f"position not committed to group {self._group}: {reason}; the pipeline goes on, "
            "its lag is not shown until that works again"
        )
