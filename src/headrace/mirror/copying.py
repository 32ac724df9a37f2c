"""The copy itself: batches from the source, in order, each record to the same partition.

Only the last record of each run is asked for its delivery report: idempotence and order make it
speak for all before it. Its offset must be the one counted to, or the session ends and the next one
compares what has arrived.
"""

import time
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any
from zlib import crc32

from headrace.client.error_table import (
    is_end_of_partition,
    is_offset_gone,
    is_passing,
    is_unknown,
)
from headrace.client.errors import BusError
from headrace.client.librdkafka import bus_errors, places
from headrace.mirror.content import HEAD, NULL, content, writable_ms
from headrace.mirror.endpoint import Endpoint
from headrace.mirror.errors import MirrorError
from headrace.mirror.identity import beyond_repair, from_the_start
from headrace.mirror.partition_copy import CopyMark, PartitionCopy
from headrace.mirror.reading import POLL_S, BatchSize
from headrace.mirror.watch import Confirm
from headrace.mirror.writer import STALL_S, ConnectionLostError, SessionFailedError, Writer, refusal
from headrace.model import TopicPartition

_PURGED = frozenset({"_PURGE_QUEUE", "_PURGE_INFLIGHT"})
_SHORT_S = 10.0
# Two questions come before anything is sent: once for a few batches, not for each.
_BATCHES_A_LOOK = 4


class Copier:
    """One session of copying, with one consumer and one producer. Owned by one thread."""

    def __init__(
        self,
        source: Endpoint,
        target: Endpoint,
        writer: Writer,
        *,
        is_following: bool,
        confirm: Confirm,
    ) -> None:
        self._source, self._target, self._writer = source, target, writer
        self._is_following = is_following
        self.copies: dict[TopicPartition, PartitionCopy] = {}
        self._batch = BatchSize()
        self._failure: MirrorError | SessionFailedError | None = None
        self._has_epoch_start = False
        self._step_bytes = 0
        self._short: dict[TopicPartition, float] = {}  # when the end of a source is believed
        self._confirm = confirm
        self._consumer: Any = source.consumer(
            {
                "isolation.level": "read_committed",
                "fetch.max.bytes": 52_428_800,
                "queued.min.messages": 100_000,
                "queued.max.messages.kbytes": 64 * 1024,
                "fetch.wait.max.ms": 100,
            }
        )

    @property
    def has_changed_times(self) -> bool:
        """Whether a record of the very first millisecond was met; see `writable_ms`."""
        return self._has_epoch_start

    def add(self, copies: Mapping[TopicPartition, PartitionCopy]) -> None:
        """Begin with more partitions."""
        self.copies |= copies
        wanted = {
            place: copy.position
            for place, copy in copies.items()
            if self._is_following or copy.overlap is not None or not copy.is_caught_up
        }
        if wanted:
            with self._source.errors():
                self._consumer.incremental_assign(places(wanted))

    def step(self) -> int:
        """Copy what is there, a few batches at most; returns how many messages it had."""
        messages = self._read()
        if messages:
            self._source.answered()
            # A consumer goes on at its offset in a topic that was made anew (librdkafka 2.16). What
            # it has brought is believed when the topic still is, after the reading, what it was;
            # and it is written to a topic that is, just now, what it was.
            gone = self._confirm({name for each in messages if (name := each.topic()) is not None})
            messages = [each for each in messages if each.topic() not in gone]
        self._step_bytes = 0
        runs: dict[TopicPartition, list[Any]] = {}
        topic, number, run = None, -1, list[Any]()
        for message in messages:
            if (error := message.error()) is not None:
                # What came before it in this batch comes first.
                self._send_all(runs)
                runs, topic = {}, None
                self._on_error(message, error)
                continue
            if message.partition() != number or message.topic() != topic:
                topic, number = message.topic(), message.partition()
                run = runs.setdefault(TopicPartition(topic, number), [])
            run.append(message)
        self._send_all(runs)
        self._batch.seen(len(messages), self._step_bytes)
        self.serve()
        return len(messages)

    def serve(self) -> None:
        """Take in acknowledgements; raises what they brought to light."""
        self._writer.serve()
        if self._failure is not None:
            raise self._failure
        for place, deadline in self._short.items():
            copy = self.copies[place]
            if copy.overlap is not None and time.monotonic() > deadline:
                raise beyond_repair(
                    place,
                    f"the target has {copy.overlap.end} records, the source only "
                    f"{copy.sent.target} up to its end; somebody else wrote to the target, or the "
                    "source lost messages",
                )

    def flush(self) -> None:
        """Return when everything sent has arrived."""
        while not all(copy.is_settled for copy in self.copies.values()):
            self._writer.wait()
            self.watch()
        self._writer.flush()

    def watch(self) -> None:
        """Look after what is under way while something else is waited for."""
        self.serve()
        self.check_stalls()

    def check_stalls(self) -> None:
        """Raise ConnectionLostError when an acknowledgement is overdue."""
        now = time.monotonic()
        for copy in self.copies.values():
            if not copy.is_settled and now - copy.acked_at > STALL_S:
                raise ConnectionLostError(f"{copy.place} was not acknowledged for {STALL_S:g} s")

    def leave(self, topics: Collection[str]) -> None:
        """Read no more of these topics."""
        if topics:
            self._unassign(lambda place: place.topic in topics)

    def close(self) -> None:
        self._consumer.close()

    def _read(self) -> list[Any]:
        wanted = self._batch.count
        with self._source.errors():
            messages: list[Any] = self._consumer.consume(wanted, POLL_S)
            for number in range(1, _BATCHES_A_LOOK):
                if len(messages) < number * wanted:
                    break
                messages += self._consumer.consume(wanted, 0)
        return messages

    def _send_all(self, runs: Mapping[TopicPartition, list[Any]]) -> None:
        for place, messages in runs.items():
            copy = self.copies[place]
            is_past_end = False
            if not self._is_following and (messages[-1].offset() or 0) >= copy.caught_up_at:
                is_past_end = True
                messages = [each for each in messages if _offset(each) < copy.caught_up_at]
            if copy.overlap is not None:
                messages = copy.pass_over(messages)
            if messages and copy.is_probing:
                copy.is_probing = False
                self._send(copy, messages[:1])
                self.flush()
                messages = messages[1:]
            if messages:
                self._send(copy, messages)
            if is_past_end:
                self._at_end(copy, copy.caught_up_at)
            elif copy.is_caught_up and not self._is_following:
                self._finish(copy)

    def _send(self, copy: PartitionCopy, messages: list[Any]) -> None:
        try:
            with bus_errors():
                self._produce(copy, messages)
        except BusError as error:
            raise self._failed(copy, error.reason) from error

    def _produce(self, copy: PartitionCopy, messages: list[Any]) -> None:
        produce = self._writer.raw.produce
        topic, number = copy.place
        parts = list[bytes]()
        last = messages[-1]
        for message in messages:
            key, value, headers = message.key(), message.value(), message.headers()
            timestamp_ms = message.timestamp()[1]
            if not timestamp_ms:
                timestamp_ms = writable_ms(timestamp_ms)
                self._has_epoch_start = True
            if headers:
                parts += content(key, value, timestamp_ms, headers)
            else:  # the same, without a call: this is done for each message
                key_length = NULL if key is None else len(key)
                value_length = NULL if value is None else len(value)
                parts.append(HEAD(key_length, value_length, timestamp_ms, 0))
                if key:
                    parts.append(key)
                if value:
                    parts.append(value)
            on_delivery = None
            if message is last:
                whole = b"".join(parts)
                mark = CopyMark(
                    message.offset() + 1,
                    copy.sent.target + len(messages),
                    crc32(whole, copy.sent.crc),
                )
                if copy.is_settled:
                    copy.acked_at = time.monotonic()
                copy.sent = mark
                copy.messages += len(messages)
                copy.size_bytes += len(whole)
                self._step_bytes += len(whole)
                on_delivery = partial(self._delivered, copy, mark)
            while True:
                try:
                    if headers is None:
                        produce(topic, value, key, number, on_delivery, timestamp=timestamp_ms)
                    else:
                        produce(
                            topic,
                            value,
                            key,
                            number,
                            on_delivery,
                            timestamp=timestamp_ms,
                            headers=headers,
                        )
                except BufferError:
                    self._writer.wait()
                    self.check_stalls()
                else:
                    break

    def _failed(self, copy: PartitionCopy, error: Any) -> MirrorError | SessionFailedError:
        if error.fatal() or error.code() in (error._FATAL, error._GAPLESS_GUARANTEE):
            return SessionFailedError(error.str())
        return refusal(self._target, copy.place, error)

    def _delivered(self, copy: PartitionCopy, mark: CopyMark, error: Any, message: Any) -> None:
        # Raising here would end a poll in the middle; `serve` raises.
        if error is not None:
            if error.name() not in _PURGED and self._failure is None:
                self._failure = self._failed(copy, error)
        elif message.offset() != mark.target - 1 and self._failure is None:
            # Another writer, or a wrong report of a retried batch: the next session reads what
            # lies there, compares it, and knows.
            self._failure = SessionFailedError(
                f"{copy.place}: a record was reported at offset {message.offset()} instead of "
                f"{mark.target - 1}"
            )
        elif self._failure is None:
            self._target.answered()
            copy.acknowledged(mark)
            copy.acked_at = time.monotonic()

    def _on_error(self, message: Any, error: Any) -> None:
        topic, number = message.topic(), message.partition()
        if topic is None or number is None or number < 0:
            if not is_passing(error) and not error.retriable():
                raise MirrorError(f"{self._source.label}: {error.str()}")
            return
        copy = self.copies[TopicPartition(topic, number)]
        if is_end_of_partition(error):
            self._at_end(copy, int(message.offset() or 0))
        elif is_offset_gone(error):
            self._skip_removed(copy)
        # An unknown topic passes too: it was asked for since, and is there.
        elif not (is_passing(error) or is_unknown(error) or error.retriable()):
            raise MirrorError(f"{self._source.label}: {copy.place}: {error.str()}")

    def _at_end(self, copy: PartitionCopy, offset: int) -> None:
        if copy.overlap is not None:
            # A source that has just started may not tell its true end yet.
            self._short.setdefault(copy.place, time.monotonic() + _SHORT_S)
            return
        copy.passed(offset)
        if copy.is_caught_up and not self._is_following:
            self._finish(copy)

    def _skip_removed(self, copy: PartitionCopy) -> None:
        """The source's retention was quicker than the copy: go on where the source starts."""
        start = self._source.oldest_offsets([copy.place])[copy.place]
        if self._confirm([copy.place.topic]):
            return
        copy.check_reach(start)
        if start <= copy.position:
            raise MirrorError(
                f"{copy.place}: the source no longer has offset {copy.position}, which it had: it "
                f"lost messages. To copy what is left, {from_the_start(copy.place.topic)}"
            )
        copy.passed(start)
        with self._source.errors():
            self._consumer.incremental_unassign(places({copy.place: start}))
            self._consumer.incremental_assign(places({copy.place: start}))

    def _finish(self, copy: PartitionCopy) -> None:
        """Read no more of a partition that is complete."""
        self._unassign(lambda place: place == copy.place)

    def _unassign(self, is_wanted: Callable[[TopicPartition], bool]) -> None:
        with self._source.errors():
            over = [
                each
                for each in self._consumer.assignment()
                if is_wanted(TopicPartition(each.topic, each.partition))
            ]
            if over:
                self._consumer.incremental_unassign(over)


def _offset(message: Any) -> int:
    return int(message.offset())
