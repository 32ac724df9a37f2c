"""Messages that have arrived and nobody has taken yet, and how far each partition is.

A message that was taken is done when the next ones are asked for, not before: what becomes of one
in between is not known.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from itertools import islice

from headrace.client.librdkafka import Partition
from headrace.client.message import Message


class Inbox:
    """Of one consumer: it holds messages of the partitions that consumer has, in their order."""

    def __init__(self) -> None:
        self._waiting = deque[Message]()
        # Offsets of each partition, each after what: lies here, was taken, is known to be done.
        self.received = dict[Partition, int]()
        self.taken = dict[Partition, int]()
        self._done = dict[Partition, int]()
        self._in_hand = set[Partition]()  # of what was taken last

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def begin(self, starts: Mapping[Partition, int]) -> None:
        """Partitions come, each to be read from an offset, or from a place librdkafka knows."""
        self.received |= starts

    def end(self, places: Iterable[Partition]) -> None:
        """Partitions go, and with them what nobody has taken."""
        gone = {*places}
        self._drop(gone)
        for place in gone:
            self.received.pop(place, None)

    def move(self, place: Partition, offset: int) -> None:
        """A partition is read on from another offset; what was taken of it counts no more."""
        self._drop({place})
        self.received[place] = offset

    def put(self, messages: list[Message]) -> None:
        """Messages arrive."""
        last = {(message[0], message[1]): message[2] + 1 for message in messages}
        # As one: Python looks for Ctrl-C after a call and where a loop begins again.
        self.received |= last
        self._waiting.extend(messages)

    def take(self, count: int) -> list[Message]:
        """The next messages, at most so many."""
        waiting = self._waiting
        if count == 1 and waiting:
            message = waiting[0]
            place = message[0], message[1]
            self.taken[place] = message[2] + 1  # nothing below is a call: as one, see `put`
            self._in_hand |= {place}
            del waiting[0]
            return [message]
        if count >= len(waiting):
            messages, rest = [*waiting], deque[Message]()
        else:
            messages, rest = [*islice(waiting, count)], deque(islice(waiting, count, None))
        last = {(message[0], message[1]): message[2] + 1 for message in messages}
        places = last.keys()
        self.taken |= last  # nothing below is a call
        self._in_hand |= places
        self._waiting = rest
        return messages

    def finish(self) -> None:
        """More is asked for: what was taken is done."""
        for place in self._in_hand:
            self._done[place] = self.taken[place]
        self._in_hand.clear()

    def pop_done(self) -> dict[Partition, int]:
        """What is done since this was asked last."""
        done, self._done = self._done, {}
        return done

    def position(self, place: Partition) -> int:
        """The offset of the partition's next message, or the place librdkafka knows."""
        for message in self._waiting:
            if (message.topic, message.partition) == place:
                return message.offset
        return self.received[place]

    def _drop(self, places: set[Partition]) -> None:
        self._waiting = deque(
            each for each in self._waiting if (each.topic, each.partition) not in places
        )
        for place in places:
            self.taken.pop(place, None)
            self._done.pop(place, None)
        self._in_hand -= places
