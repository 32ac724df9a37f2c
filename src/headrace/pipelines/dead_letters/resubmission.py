"""Dead letters on their way back: which to send, the sending, and what to remember of it.

A letter counts as sent once the broker has acknowledged it. Whoever dies between that and the
commit sends it again next time: at least once, as everything about dead letters.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping

from headrace.client.bus import Bus
from headrace.client.errors import BusError
from headrace.client.message import Delivery
from headrace.client.producer import Producer
from headrace.pipelines.dead_letters.letter import DeadLetter, LetterSource
from headrace.pipelines.dead_letters.sent import Sent

Place = tuple[int, int]  # partition and offset in the dead-letter topic

_MAX_MESSAGE_BYTES = 16 * 1024 * 1024


class ResubmissionPlan:
    """What one reading of the topic says is to be sent; holds places, not values."""

    def __init__(
        self,
        letters: Iterable[DeadLetter],
        sent: Mapping[int, Sent],
        is_wanted: Callable[[DeadLetter], bool],
        *,
        is_again: bool = False,
        limit: int | None = None,
    ) -> None:
        self.places = defaultdict[LetterSource, list[Place]](list)
        self.topics = Counter[str]()
        self._chosen = dict[LetterSource, int]()  # which of its letters
        self._sent = sent
        cut = set[LetterSource]()
        for letter in letters:
            self.places[letter.source].append((letter.letter_partition, letter.letter_offset))
            if letter.source not in self._chosen and is_wanted(letter):
                self._chosen[letter.source] = len(self.places[letter.source]) - 1
                if letter.cut:
                    cut.add(letter.source)
        chosen = [each for each in self._chosen if is_again or not self.is_sent(each)]
        # They are not what the record was.
        self.cut = [each for each in chosen if each in cut]
        self.sources = [each for each in chosen if each not in cut][:limit]
        self.chosen = {self.places[each][self._chosen[each]] for each in self.sources}
        self.topics.update(each.topic for each in self.sources)

    def is_sent(self, source: LetterSource) -> bool:
        """Whether one of its letters was sent before."""
        return any(
            offset in self._sent[number] for number, offset in self.places[source]
            if number in self._sent
        )  # fmt: skip

    def remember(self, sources: Iterable[LetterSource], ends: Mapping[int, int]) -> dict[int, Sent]:
        """What is to be committed for each partition now that these were sent too."""
        offsets, letters = defaultdict[int, set[int]](set), defaultdict[int, list[int]](list)
        for source in sources:
            for number, offset in self.places[source]:
                offsets[number].add(offset)
        for places in self.places.values():
            for number, offset in places:
                letters[number].append(offset)
        updated = {}
        for number in offsets:
            before = self._sent.get(number, Sent())
            updated[number] = Sent(before.position, set(before.later))
            updated[number].add(offsets[number], letters[number], ends[number])
        return updated


class Resubmission:
    """Sends letters with one producer and keeps the account."""

    def __init__(self, bus: Bus, to: str | None = None) -> None:
        self._producer = Producer(bus, config={"message.max.bytes": _MAX_MESSAGE_BYTES})
        self._to = to
        self._under_way = list[tuple[LetterSource, Delivery]]()
        self.delivered = set[LetterSource]()
        self.failures = Counter[str]()

    def send(self, letter: DeadLetter) -> None:
        """Queue a letter as the record it was: bytes, key, headers and timestamp."""
        delivery = self._producer.send(
            self._to or letter.source.topic,
            letter.value,
            letter.key,
            headers=letter.headers,
            partition=None if self._to else letter.source.partition,
            # Of a record that had none it is the time it is sent.
            timestamp_ms=letter.timestamp_ms if letter.timestamp_ms > 0 else None,
        )
        self._under_way.append((letter.source, delivery))

    def finish(self) -> None:
        """Wait until each was acknowledged or has failed."""
        for source, delivery in self._under_way:
            try:
                delivery.wait()
            except BusError as error:
                self.failures[str(error)] += 1
            else:
                self.delivered.add(source)
        self._producer.close()
