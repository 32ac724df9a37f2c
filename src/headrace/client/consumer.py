"""Reading messages, alone or as a member of a group.

What was returned is done when more is asked for, and only then may its offset be committed
(`Inbox`): a message that was returned and not dealt with is never lost.
"""

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import replace
from datetime import datetime, timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar
from uuid import uuid4

from headrace.client.admin import DEFAULT_TIMEOUT_S
from headrace.client.bus import READ_COMMITTED, Bus
from headrace.client.complaints import Complaints
from headrace.client.error_table import is_passing, is_unknown
from headrace.client.errors import BusError
from headrace.client.inbox import Inbox
from headrace.client.librdkafka import Partition, checked, in_thread
from headrace.client.making import ends_in_child, make_client
from headrace.client.message import Message
from headrace.client.positions import OLDEST, Position, PositionKind, position_of
from headrace.errors import ConfigError
from headrace.patience import Patience

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, TopicPartition

# The user's properties win.
DEFAULTS: Mapping[str, object] = {
    "client.id": "headrace",
    "isolation.level": READ_COMMITTED,
    # Messages that retention took before they were read are told of, not passed over.
    "auto.offset.reset": "error",
    # Enough to be never short of messages, and not a gigabyte of memory as by default.
    "queued.max.messages.kbytes": 16 * 1024,
}
MAX_MESSAGES = 500  # messages a poll returns, as Java's `max.poll.records`
_SLICE_S = 0.1  # how soon an interruption and Ctrl-C are noticed
_STORE_S = 1.0  # how long what is done may wait for the next commit to know of it
_BEGINNING, _END, _STORED = -2, -1, -1000  # librdkafka's logical offsets
_Answer = TypeVar("_Answer")
Start = str | int | datetime | timedelta | Position


class Consumer:
    """Reads messages of topics; iterate over it, or `poll`. Owned by one thread.

        with Consumer(bus, "orders", group="billing") as consumer:
            for message in consumer.poll():
                print(message.partition, message.offset, message.text)
            consumer.commit()

    What was returned counts as done when more is asked for, and is committed then; what a crash
    finds undone is returned again. With a group, partitions are shared among its members; a name
    that begins with `^` is a pattern. Without one, all partitions there are now are read and
    nothing is committed.
    """

    def __init__(
        self,
        bus: Bus | None,
        topics: str | Sequence[str],
        *,
        group: str | None = None,
        start: Start = OLDEST,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        config: Mapping[str, object] | None = None,
    ) -> None:
        """`start` is where to begin where the group has committed nothing: "oldest", "latest", an
        offset, a datetime, a timedelta before now, or a Position. `timeout_s` bounds each question
        to the bus; `config` is for librdkafka, the bus's own properties win over it.
        """
        from confluent_kafka import Consumer as Raw

        self.bus = bus or Bus()
        self.topics = [topics] if isinstance(topics, str) else list(topics)
        self.group = group
        self.timeout_s = timeout_s
        self._start = _checked_start(start)
        self._complaints = Complaints(self.bus)
        self._inbox = Inbox()
        self._unplaced = set[Partition]()  # the group's, but not begun to be read
        self._is_called_back = False  # by librdkafka, which then answers no other thread
        self._left_alone: Future[Any] | None = None  # a question that Ctrl-C took us away from
        self._stored_at = time.monotonic()
        self._troubles = deque[BusError]()  # told once what came before them was returned
        self._interrupted = threading.Event()
        self.is_closed = self._has_begun = False
        if not self.topics or not all(isinstance(each, str) and each for each in self.topics):
            raise ConfigError("topics", repr(topics), "name at least one topic")
        if group is None and any(each.startswith("^") for each in self.topics):
            raise ConfigError("topics", repr(topics), "a pattern takes a group: group=…")
        if group == "":
            raise ConfigError("group", "", "name it, or leave it out to read alone")
        # A properties file for another purpose names another group.
        ours = {"group.id": group or f"headrace-{uuid4()}", "enable.auto.offset.store": "false"}
        if group is None:
            ours["enable.auto.commit"] = "false"
        reader = replace(self.bus, properties={**self.bus.properties, **ours})
        merged = {**DEFAULTS, **(config or {}), "error_cb": self._complaints.on_error}
        made = reader.client_config(merged)
        strategy = str(made.get("partition.assignment.strategy", ""))
        self._is_incremental = made.get("group.protocol") == "consumer" or (
            "cooperative" in strategy
        )
        self._raw: Any = make_client(reader, Raw, merged)
        ends_in_child(self)

    def poll(
        self, timeout_s: float | None = None, max_messages: int = MAX_MESSAGES
    ) -> list[Message]:
        """The next messages, at least one; none when `timeout_s` is over or it is interrupted.

        None waits until something comes, 0 does not wait. What the last call returned is now done.
        """
        self.fill(timeout_s, max_messages)
        self._interrupted.clear()
        return self.take(max_messages)

    def __iter__(self) -> Iterator[Message]:
        """Message after message, until `interrupt` or `close`."""
        while not self.is_closed:
            self.fill(None)
            if self.was_interrupted():
                return
            yield from self.take(1)

    def interrupt(self) -> None:
        """From any thread or signal handler: the poll that waits, or the next one, returns."""
        self._interrupted.set()

    def commit(self) -> None:
        """Commit all that was returned so far; BusError if that did not work."""
        self._must_have_group()
        if places := self._places(self._inbox.taken):
            self._ask(lambda: self._raw.commit(offsets=places, asynchronous=False))

    def committed(self) -> dict[Partition, int]:
        """The committed offset of each partition this consumer has, where there is one."""
        return self._committed(self._inbox.received)

    def assignment(self) -> list[Partition]:
        """The partitions this consumer reads now."""
        return sorted(self._inbox.received)

    def seek(self, topic: str, partition: int, to: Start) -> None:
        """Go on from there; BusError if the partition is not among those this consumer reads."""
        place = self._owned(topic, partition)
        offset = self._offsets_of(_checked_start(to), [place])[place]
        self._inbox.move(place, offset)
        self._go_to(place)

    def _go_to(self, place: Partition) -> None:
        """Let librdkafka fetch from where it has to go on."""
        from confluent_kafka import KafkaException

        (wanted,) = self._places({place: self._inbox.received[place]})
        try:
            self._raw.seek(wanted)
        except KafkaException as error:
            if error.args[0].code() != error.args[0]._STATE:
                raise self._complaints.failure(error.args[0], self.timeout_s) from None
            # Not fetched yet, or no longer since its offset was gone: it is given anew, and without
            # a group alone: another that waits for its own seek would be told of once more.
            if self._is_incremental or self.group is None:
                self._raw.incremental_unassign([wanted])
                self._raw.incremental_assign([wanted])
            else:
                self._raw.assign(self._places(self._inbox.received))

    def position(self, topic: str, partition: int) -> int | None:
        """The offset of the next message of a partition; None before anything is known."""
        place = self._owned(topic, partition)
        return offset if (offset := self._inbox.position(place)) >= 0 else None

    def lag(self) -> dict[Partition, int]:
        """How many offsets each partition has that this consumer has not returned yet."""
        self._must_be_open()
        behind = dict[Partition, int]()
        for place in self.assignment():
            (asked,) = self._places({place: 0})
            oldest, end = self._ask(
                lambda asked=asked: self._raw.get_watermark_offsets(  # type: ignore[misc]
                    asked, self.timeout_s
                )
            )
            at = self.position(*place)
            behind[place] = max(end - max(oldest if at is None else at, oldest), 0)
        return behind

    def close(self) -> None:
        """Leave the group; what is done is committed. Does nothing the second time."""
        if not self.is_closed:
            self.is_closed = True
            self._store_done()
            self._call(self._close, self._left_alone)

    def end_in_child(self) -> None:
        """The parent reads on."""
        self.is_closed = True

    def _close(self, before: "Future[Any] | None") -> None:
        if before is not None:  # it would find no client any more
            wait([before])
        self._raw.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    # For `poll` and its twin: messages arrive in the buffer first.

    def fill(
        self,
        timeout_s: float | None,
        max_messages: int = MAX_MESSAGES,
        is_stopped: Callable[[], bool] = bool,
    ) -> None:
        """Get messages unless some are here; what was taken before is done."""
        if self.has_more(max_messages):
            return
        self._store_done()
        if self._inbox or self._troubles:
            return
        try:
            if not self._has_begun:
                self._begin()
            if self._unplaced:
                self._place()
            self._wait(timeout_s, is_stopped)
        except BaseException:
            # Ctrl-C, say, in the midst: what librdkafka has handed out and we have not is gone.
            self._rewind()
            raise

    def has_more(self, max_messages: int = 1) -> bool:
        """Whether there is something to take without waiting; what was taken before is done.

        False too when it is time to tell librdkafka what is done: `fill` does.
        """
        self._must_be_open()
        if max_messages < 1:
            raise ValueError(f"max_messages is {max_messages}; one is the least")
        self._inbox.finish()
        is_here = bool(self._inbox or self._troubles)
        return is_here and time.monotonic() < self._stored_at + _STORE_S

    def _wait(self, timeout_s: float | None, is_stopped: Callable[[], bool]) -> None:
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while not self._interrupted.is_set() and not is_stopped():
            left = _SLICE_S if deadline is None else deadline - time.monotonic()
            # poll returns as soon as one comes; consume, when it has as many as asked for.
            if (first := self._raw.poll(max(min(left, _SLICE_S), 0))) is not None:
                self._receive([first])
                self._receive(self._raw.consume(MAX_MESSAGES - 1, 0))
            elif (refused := self._complaints.take_refusal()) is not None:
                raise refused
            if self._inbox or self._troubles or left <= 0:
                return

    def _rewind(self) -> None:
        from confluent_kafka import KafkaException

        for place in self._places(self._inbox.received):
            with contextlib.suppress(KafkaException):  # it begins there anyway
                self._raw.seek(place)

    def was_interrupted(self) -> bool:
        """Whether somebody called `interrupt`; they are heard by this."""
        if not self._interrupted.is_set():
            return False
        self._interrupted.clear()
        return True

    def take(self, max_messages: int) -> list[Message]:
        """Up to so many messages of the buffer; raises what came instead."""
        if not self._inbox and self._troubles:
            raise self._troubles.popleft()
        return self._inbox.take(max_messages)

    def _store_done(self) -> None:
        """Let librdkafka commit what is done."""
        from confluent_kafka import KafkaException

        done = self._inbox.pop_done()
        if self.group is not None:
            for place in self._places(done):
                # A partition that went between two polls is its new owner's.
                with contextlib.suppress(KafkaException):
                    self._raw.store_offsets(offsets=[place])
        self._stored_at = time.monotonic()

    def _receive(self, records: list[Any]) -> None:
        messages = list[Message]()
        add, mine, make = messages.append, self._inbox.received, tuple.__new__
        for record in records:
            if (error := record.error()) is not None:
                self._on_event(record, error)
                continue
            topic, partition = record.topic(), record.partition()
            if (topic, partition) not in mine:
                continue  # it went while these were handed over: its new owner reads them
            headers = record.headers()
            fields = (
                topic,
                partition,
                record.offset(),
                record.timestamp()[1],
                record.key(),
                record.value(),
                tuple(headers) if headers else (),
            )
            add(make(Message, fields))  # a third of what its constructor costs
        self._inbox.put(messages)

    def _on_event(self, record: Any, error: "KafkaError") -> None:
        topic, partition = record.topic(), record.partition()
        if error.code() == error._PARTITION_EOF:
            return
        if error.code() == error._MAX_POLL_EXCEEDED:
            trouble = BusError(
                error,
                f"{error.str()}; the group went on without this consumer, and what was returned "
                "last may be read by another: poll more often, or raise max.poll.interval.ms",
                is_passing=True,
            )
        elif error.code() == error._AUTO_OFFSET_RESET:
            trouble = BusError(
                error,
                f"partition {partition} of {topic} has no offset {record.offset()} any more, or "
                "not yet (retention, or a topic made again under its name); seek to where to go "
                "on, or give the property auto.offset.reset=earliest or latest",
                is_passing=False,
            )
        elif is_unknown(error):
            trouble = BusError(error, f"there is no topic {topic}", is_passing=True)
        elif error.fatal() or not (is_passing(error) or error.retriable()):
            trouble = self._complaints.failure(error, None)
        else:
            return  # it passes
        self._troubles.append(trouble)

    # Partitions

    def _begin(self) -> None:
        from confluent_kafka import KafkaException

        if self.group is not None:
            try:
                self._raw.subscribe(
                    self.topics,
                    on_assign=self._on_assign,
                    on_revoke=self._on_revoke,
                    on_lost=self._on_revoke,
                )
            except KafkaException as error:
                raise self._complaints.failure(error.args[0], None) from None
        else:
            places = [
                (topic, number) for topic in self.topics for number in self._numbers_of(topic)
            ]
            starts = self._offsets_of(self._start, places)
            self._raw.assign(self._places(starts))
            self._inbox.begin(starts)
        self._has_begun = True

    def _numbers_of(self, topic: str) -> list[int]:
        from confluent_kafka import KafkaException

        def ask() -> list[int]:
            found = self._raw.list_topics(topic, timeout=self.timeout_s).topics[topic]
            if found.error is not None:
                raise KafkaException(found.error)
            return sorted(found.partitions)

        try:
            return self._ask(ask)
        except BusError as error:
            if error.reason is not None and is_unknown(error.reason):
                raise BusError(
                    error.reason, f"there is no topic {topic}", is_passing=False
                ) from None
            raise

    def _on_assign(self, _raw: object, came: "list[TopicPartition]") -> None:
        self._unplaced |= {(each.topic, each.partition) for each in came}
        self._is_called_back = True
        try:
            self._place()
        except BaseException:
            # Ctrl-C: the next `fill` goes on. Said nothing, librdkafka would begin where it likes.
            self._assign([])
            raise
        finally:
            self._is_called_back = False

    def _place(self) -> None:
        """Begin to read what came, where the group left it, or `start` says."""
        places = sorted(self._unplaced)
        starts = dict.fromkeys(places, _STORED)
        try:
            committed = self._committed(places)
            new = [place for place in places if place not in committed]
            starts = committed | self._offsets_of(self._start, new)
        except BusError as error:
            self._troubles.append(error)  # raised from here, it would cost what is being received
        self._inbox.begin(starts)
        self._assign(self._places(starts))
        self._unplaced.clear()

    def _assign(self, places: "list[TopicPartition]") -> None:
        if self._is_incremental:
            self._raw.incremental_assign(places)
        else:
            self._raw.assign(places)

    def _on_revoke(self, _raw: object, went: "list[TopicPartition]") -> None:
        """They go, and with them what was not returned yet; librdkafka commits what is done."""
        places = [(each.topic, each.partition) for each in went]
        self._unplaced -= {*places}
        self._inbox.end(places)
        if self._is_incremental:
            self._raw.incremental_unassign(went)
        else:
            self._raw.unassign()

    def _owned(self, topic: str, partition: int) -> Partition:
        self._must_be_open()
        if (topic, partition) not in self._inbox.received:
            mine = ", ".join(f"{name}:{number}" for name, number in self.assignment())
            raise BusError(
                None,
                f"partition {partition} of {topic} is not read by this consumer now"
                f" (it has {mine or 'none before its first poll'})",
                is_passing=False,
            )
        return topic, partition

    def _committed(self, places: Iterable[Partition]) -> dict[Partition, int]:
        self._must_have_group()
        if not (asked := self._places(dict.fromkeys(places, 0))):
            return {}

        def ask() -> "list[TopicPartition]":
            return checked(self._raw.committed(asked, timeout=self.timeout_s))

        return {
            (each.topic, each.partition): each.offset for each in self._ask(ask) if each.offset >= 0
        }

    def _offsets_of(self, start: Position, places: Iterable[Partition]) -> dict[Partition, int]:
        """Where a position is; for the oldest librdkafka's own word, which it resolves itself."""
        wanted = list(places)
        if start.kind is PositionKind.OLDEST:
            return dict.fromkeys(wanted, _BEGINNING)
        if start.kind is PositionKind.OFFSET:
            return dict.fromkeys(wanted, start.value)
        if not wanted:
            return {}
        # The end is the one now, not the one when the first fetch is answered.
        is_end = start.kind is PositionKind.LATEST
        asked = self._places(dict.fromkeys(wanted, _END if is_end else start.value))

        def ask() -> "list[TopicPartition]":
            return checked(self._raw.offsets_for_times(asked, self.timeout_s))

        return {
            (each.topic, each.partition): each.offset if each.offset >= 0 else _END
            for each in self._ask(ask)
        }

    def _ask(self, question: Callable[[], _Answer]) -> _Answer:
        """The answer to a question put to librdkafka, asked again while that may help."""
        from confluent_kafka import KafkaException

        patience = Patience(self.timeout_s)
        while True:
            try:
                return self._call(question)
            except KafkaException as error:
                reason: KafkaError = error.args[0]
            if not is_passing(reason) or not patience.pause():
                raise self._complaints.failure(reason, self.timeout_s)

    def _call(self, call: Callable[..., _Answer], *args: Any) -> _Answer:
        """Make a call of librdkafka's that blocks; Ctrl-C is heard meanwhile."""
        is_main = threading.current_thread() is threading.main_thread()
        if not is_main or self._is_called_back:
            return call(*args)
        future = in_thread(lambda: call(*args))
        try:
            while not wait([future], _SLICE_S).done:
                pass
            return future.result()
        except BaseException:
            if not future.done():
                self._left_alone = future
            raise

    def _must_be_open(self) -> None:
        if self.is_closed:
            raise RuntimeError("the consumer is closed, or of the process this one was forked from")

    def _must_have_group(self) -> None:
        self._must_be_open()
        if self.group is None:
            raise RuntimeError("only a consumer with a group commits; give it group=…")

    @staticmethod
    def _places(offsets: Mapping[Partition, int]) -> "list[TopicPartition]":
        from confluent_kafka import TopicPartition

        return [TopicPartition(*place, offset) for place, offset in offsets.items()]


def _checked_start(given: Start) -> Position:
    position = position_of(given)
    if position.kind is PositionKind.SHIFT:
        raise ConfigError(
            "start", str(given), "a shift counts from a committed offset; write a time ago (-1h)"
        )
    return position
