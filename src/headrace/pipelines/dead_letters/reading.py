"""The letters of a dead-letter topic, read to the end it has now with a plain consumer."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from headrace.pipelines.dead_letters.letter import DeadLetter, Source, read_letter
from headrace.pipelines.errors import SourceError

if TYPE_CHECKING:
    from confluent_kafka import Consumer

CONSUMER_CONFIG: Mapping[str, object] = {
    "group.id": "headrace-dead-letters",  # librdkafka wants one; nothing is committed under it
    "enable.auto.commit": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "error",
    "isolation.level": "read_committed",
}
_BATCH = 500
_WAIT_S = 0.5


def read_letters(
    consumer: "Consumer", topic: str, bounds: Mapping[int, tuple[int, int]], timeout_s: float
) -> Iterator[DeadLetter]:
    """Yield the letters between two offsets of each partition; SourceError if nothing comes."""
    from confluent_kafka import TopicPartition

    is_open = {number: end for number, (start, end) in bounds.items() if start < end}
    consumer.assign([TopicPartition(topic, number, bounds[number][0]) for number in is_open])
    silent_s = 0.0
    while is_open:
        # Any: by its annotations even a message without an error may have no offset.
        messages: list[Any] = consumer.consume(_BATCH, _WAIT_S)
        silent_s = 0.0 if messages else silent_s + _WAIT_S
        if silent_s >= timeout_s:
            raise SourceError(
                f"topic {topic} could not be read to its end: no answer for {timeout_s:g} s"
            )
        for message in messages:
            number = message.partition()
            error = message.error()
            if error is not None and error.code() == error._PARTITION_EOF:
                is_open.pop(number, None)
            elif error is not None:
                raise SourceError(f"topic {topic}: {error.str()}")
            elif number in is_open:
                if message.offset() < is_open[number] and (letter := read_letter(message)):
                    yield letter
                if message.offset() + 1 >= is_open[number]:
                    del is_open[number]


def each_once(letters: Iterable[DeadLetter]) -> Iterator[DeadLetter]:
    """The first letter of each source; a batch that was tried again has written others."""
    seen = set[Source]()
    for letter in letters:
        if letter.source not in seen:
            seen.add(letter.source)
            yield letter
