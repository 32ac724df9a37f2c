"""Stretches of partitions, read once: for state, checks and counts beside the copy."""

import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.mirror.batch_size import BatchSize
from headrace.mirror.end import End
from headrace.mirror.errors import MirrorError
from headrace.mirror.questions import end_offsets
from headrace.model import TopicPartition

if TYPE_CHECKING:
    from confluent_kafka import Message

# Nothing for so long: is there anything to wait for? Longer than a broker needs after its start
# to know its true end.
_IDLE_S = 10.0
POLL_S = 0.1  # how long a batch is waited for; also how late a stop is seen


class Stretch(NamedTuple):
    """Offsets from `start` to before `stop`."""

    start: int
    stop: int


def read(
    end: End, stretches: Mapping[TopicPartition, Stretch], *, is_committed_only: bool = True
) -> Iterator[tuple[TopicPartition, list["Message"]]]:
    """The messages of each stretch, in order, as far as the log still has them.

    Where it starts later than the stretch, reading begins there. Raises StoppedError, and
    MirrorError when the log ends before the stretch does: it is another one, or has lost messages.
    """
    from confluent_kafka import TopicPartition as Place

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
        consumer.assign([Place(*each, it.start) for each, it in pending.items()])
        while pending:
            end.pause(0)
            runs: dict[TopicPartition, list[Message]] = {}
            passed = dict[TopicPartition, int]()
            size_bytes = 0
            messages = consumer.consume(batch.count, POLL_S)
            for message in messages:
                partition = _place(message)
                if (error := message.error()) is not None:
                    if error.code() == error._PARTITION_EOF:
                        passed[partition] = _offset(message)
                    elif not error.retriable() and error.code() != error._TRANSPORT:
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
                consumer.incremental_unassign([Place(*each) for each in over])
    finally:
        consumer.close()


def _check_ends(end: End, pending: Mapping[TopicPartition, Stretch]) -> None:
    for partition, stop in end_offsets(end, pending).items():
        if stop < pending[partition].stop:
            raise MirrorError(
                f"{end.label}: {partition} ends at {stop}, and ended at {pending[partition].stop} "
                "before: it has lost messages"
            )


def _place(message: Any) -> TopicPartition:
    return TopicPartition(message.topic(), message.partition())


def _offset(message: Any) -> int:
    return int(message.offset())
