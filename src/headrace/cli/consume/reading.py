"""Records on their way from the consumer to stdout, batch by batch.

Invariant: a record is printed only while its partition is open: owned by this process and not
read to its end. What came from a partition that was taken away is its new owner's to print.
"""

import contextlib
import select
import sys
import time
from typing import Any

from headrace.cli.connection import unknown_topic
from headrace.cli.consume.group_start import not_there, reset_command
from headrace.cli.consume.record_filter import Condition
from headrace.cli.consume.record_format import Format
from headrace.cli.endings import CommandError, tell
from headrace.cli.outage import Outage
from headrace.client.error_table import NamedError, is_end_of_partition, is_offset_gone, is_unknown
from headrace.client.errors import BusError
from headrace.client.librdkafka import Partition, bus_errors, places

_BATCH = 2000
_WAIT_S = 0.2


class Printout:
    """stdout, which knows when nobody reads it any more. Raises BrokenPipeError then."""

    def __init__(self) -> None:
        self._buffer = sys.stdout.buffer
        self._reader = select.poll()
        self._room = select.poll()
        with contextlib.suppress(OSError):  # not a file of the system's: a test reads it
            self._reader.register(sys.stdout.fileno(), 0)  # 0: only that the other end is closed
            self._room.register(sys.stdout.fileno(), select.POLLOUT)

    def write(self, parts: list[bytes]) -> None:
        """Return when all of it has left this process."""
        rest = memoryview(b"".join(parts))
        while rest:
            # With PYTHONUNBUFFERED, and where stdout does not block, less than all may be taken.
            try:
                written = self._buffer.write(rest)
            except BlockingIOError as error:
                written = error.characters_written
            if not written:
                self._room.poll()
            rest = rest[written or 0 :]
        self._flush()

    def check(self) -> None:
        """Notice a closed pipe while there is nothing to write."""
        if self._reader.poll(0):
            raise BrokenPipeError

    def _flush(self) -> None:
        while True:
            try:
                self._buffer.flush()
            except BlockingIOError:
                self._room.poll()
            else:
                return


class Reader:
    """Reads what is open and prints it. Whoever owns it opens and closes partitions."""

    def __init__(
        self,
        consumer: Any,
        outage: Outage,
        form: Format,
        condition: Condition | None,
        *,
        count: int | None,
        until_ms: int | None,
        is_following: bool,
        timeout_s: float,
        group: str | None = None,
    ) -> None:
        self.open: dict[Partition, int] = {}  # each with the offset at which it ends
        self.left = sys.maxsize if count is None else count
        self.has_read = self.has_printed = False
        self._consumer = consumer
        self._outage = outage
        self._form = form
        self._condition = condition
        self._until_ms = until_ms
        self._is_following = is_following
        self._timeout_s = timeout_s
        self._group = group
        self._printout = Printout()
        self._answered_at = time.monotonic()
        self._is_idle = False

    def read(self) -> dict[Partition, int]:
        """Print the next records, if there are any within a moment.

        Returns the position in each partition that has moved: all before it is on stdout.
        """
        # Waiting for one returns as soon as it comes; waiting for a batch, when that is full.
        records = self._consumer.consume(1, _WAIT_S)
        if not records:
            self._printout.check()
            self._check_broker()
            self._is_idle = True
            return {}
        records += self._consumer.consume(_BATCH, 0)
        self._answered_at = time.monotonic()
        if self._is_idle:  # else these may have waited in librdkafka since before the outage
            self._is_idle = False
            self._outage.over()
        parts, positions = self._take(records)
        if parts:
            self.has_printed = True
            self._printout.write(parts)
        return positions

    def _take(self, records: list[Any]) -> tuple[list[bytes], dict[Partition, int]]:
        parts, positions = list[bytes](), dict[Partition, int]()
        form, condition, until_ms = self._form, self._condition, self._until_ms
        for record in records:
            if (error := record.error()) is not None:
                self._on_event(record, error)
                continue
            partition = (record.topic(), record.partition())
            if (end := self.open.get(partition)) is None:
                continue
            offset = record.offset()
            if offset >= end or (until_ms is not None and record.timestamp()[1] >= until_ms):
                self._close(partition)
                continue
            self.has_read = True
            if condition is None or condition(record):
                parts.append(form(record))
                self.left -= 1
            positions[partition] = offset + 1
            if offset + 1 >= end:
                self._close(partition)
            if self.left <= 0:
                break
        return parts, positions

    def _close(self, partition: Partition) -> None:
        del self.open[partition]
        self._consumer.pause(places({partition: 0}))

    def _on_event(self, record: Any, error: Any) -> None:
        partition = (record.topic(), record.partition())
        if is_end_of_partition(error):
            # All there is has been read, though the last offset may be no record but a marker
            # of a transaction, or one that was compacted away.
            if not self._is_following and partition in self.open:
                self._close(partition)
        elif is_unknown(error):
            raise unknown_topic(partition[0])
        elif is_offset_gone(error):
            raise self._passed(partition, record.offset(), error)
        elif error.name() == "_MAX_POLL_EXCEEDED":
            tell("stdout was not read for so long that the group went on without this member")
        elif error.fatal() or not error.retriable():
            raise CommandError(error.str())

    def _passed(self, partition: Partition, offset: int, error: NamedError) -> CommandError:
        """The error for an offset that went, or whose topic was made again, while reading."""
        topic, number = partition
        (place,) = places({partition: 0})
        oldest, end = self._consumer.get_watermark_offsets(place, self._timeout_s)
        reason = not_there(partition, offset, oldest, end)
        if reason is None:  # the log has changed once more
            reason = f"partition {number} of {topic}: {error.str()}"
        if self._group is None:
            return CommandError(f"{reason}; --from oldest begins with what there is")
        return CommandError(
            f"{reason}; {reset_command(self._group, [topic], [number])} "
            f"lets group {self._group} begin with what there is"
        )

    def _check_broker(self) -> None:
        """Who reads to an end must not wait for a broker that never comes back."""
        if self._is_following or time.monotonic() - self._answered_at < self._timeout_s:
            return
        try:
            with bus_errors():
                self._consumer.list_topics(timeout=self._timeout_s)
        except BusError as error:
            raise CommandError(
                "no broker answers any more; what was read so far is printed"
            ) from error
        self._answered_at = time.monotonic()
