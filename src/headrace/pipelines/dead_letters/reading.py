"""The letters of a dead-letter topic, read to the end it has now."""

from collections.abc import Iterable, Iterator, Mapping

from headrace.client.bus import Bus
from headrace.client.ranges import read_ranges
from headrace.pipelines.dead_letters.letter import DeadLetter, LetterSource, read_letter


def read_letters(
    bus: Bus, topic: str, bounds: Mapping[int, tuple[int, int]], timeout_s: float
) -> Iterator[DeadLetter]:
    """Yield the letters between two offsets of each partition; BusError if nothing comes."""
    ranges = {(topic, number): each for number, each in bounds.items()}
    for messages in read_ranges(bus, ranges, timeout_s=timeout_s):
        for message in messages:
            if letter := read_letter(message):
                yield letter


def each_once(letters: Iterable[DeadLetter]) -> Iterator[DeadLetter]:
    """The first letter of each source; a batch that was tried again has written others."""
    seen = set[LetterSource]()
    for letter in letters:
        if letter.source not in seen:
            seen.add(letter.source)
            yield letter
