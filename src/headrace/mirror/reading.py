"""Stretches of partitions, read once: for state, checks and counts beside the copy.

Unlike `client.ranges` it does not believe the end of a log that is shorter than it was: a broker
that has just started may not tell its true end yet.
"""

import time
from collections.abc import Iterator, Mapping
from typing import Any

from headrace.client.error_table import is_end_of_partition, is_passing
from headrace.client.librdkafka import places
from headrace.mirror.endpoint import Endpoint
from headrace.mirror.errors import MirrorError
from headrace.model import TopicPartition

# Nothing for so long: is there anything to wait for? Longer than a broker needs after its start
# to know its true end.
_IDLE_S = 10.0
POLL_S = 0.1  # how long a batch is waited for; also how late a stop is seen


class BatchSize:
    """How many messages to ask a consumer for at once: follows the size of those that come.

    Many small ones are quick to handle; as many large ones would fill the memory, for librdkafka
    collects what it was asked for before it gives anything.
    """

    _LEAST, _FIRST, _MOST = 8, 64, 5000
    _WANTED_BYTES = 8 * 1024 * 1024
    _GROWTH = 4  # at most, from one batch to the next: sizes change within a topic

    def __init__(self) -> None:
        self.count = self._FIRST

    def seen(self, messages: int, size_bytes: int) -> None:
        """Learn from a batch."""
        if messages:
            fitting = self._WANTED_BYTES * messages // max(size_bytes, 1)
            self.count = max(self._LEAST, min(fitting, self.count * self._GROWTH, self._MOST))


def read(
    end: Endpoint, stretches: Mapping[TopicPartition, range], *, is_committed_only: bool = True
) -> Iterator[tuple[TopicPartition, list[Any]]]:
    """The messages of each stretch, in order, as far as the log still has them.

    Where it starts later than the stretch, reading begins there. Raises StoppedError, and
    MirrorError when the log ends before the stretch does: it is another one, or has lost messages.
    """
    pending = {each: it for each, it in stretches.items() if it.start < it.stop}
    if not pending:
        return
    consumer = end.consumer(
        {
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed" if is_committed_only else "read_uncommitted",
        }
    )
    batch = BatchSize()
    next_look = time.monotonic() + _IDLE_S
    try:
        with end.errors():
            consumer.assign(places({each: it.start for each, it in pending.items()}))
        while pending:
            end.look()
            runs: dict[TopicPartition, list[Any]] = {}
            passed = dict[TopicPartition, int]()
            size_bytes = 0
            with end.errors():
                messages = consumer.consume(batch.count, POLL_S)
            for message in messages:
                partition = _place(message)
                if (error := message.error()) is not None:
                    if is_end_of_partition(error):
                        passed[partition] = _offset(message)
                    elif not error.retriable() and not is_passing(error):
                        raise MirrorError(f"{end.label}: {partition}: {error.str()}")
                    continue
                offset = _offset(message)
                passed[partition] = offset + 1
                stretch = pending.get(partition)
                if stretch is not None and stretch.start <= offset < stretch.stop:
                    size_bytes += len(message.value() or b"") + len(message.key() or b"")
                    runs.setdefault(partition, []).append(message)
            batch.seen(len(messages), size_bytes)
            if messages:
                end.answered()
            if runs:
                next_look = time.monotonic() + _IDLE_S
            elif time.monotonic() > next_look:
                _check_ends(end, pending)
                next_look = time.monotonic() + _IDLE_S
            yield from runs.items()
            over = [
                each for each, at in passed.items() if each in pending and at >= pending[each].stop
            ]
            if over:
                for each in over:
                    del pending[each]
                consumer.incremental_unassign(places(dict.fromkeys(over, 0)))
    finally:
        consumer.close()


def _check_ends(end: Endpoint, pending: Mapping[TopicPartition, range]) -> None:
    for partition, stop in end.visible_ends(pending).items():
        if stop < pending[partition].stop:
            raise MirrorError(
                f"{end.label}: {partition} ends at {stop}, and ended at {pending[partition].stop} "
                "before: it has lost messages"
            )


def _place(message: Any) -> TopicPartition:
    return TopicPartition(message.topic(), message.partition())


def _offset(message: Any) -> int:
    return int(message.offset())
