"""One dead letter as it lies in its topic."""

from dataclasses import dataclass
from typing import Protocol

Headers = list[tuple[str, bytes | None]]

PREFIX = "headrace."
PIPELINE, REASON = f"{PREFIX}pipeline", f"{PREFIX}reason"
TOPIC, PARTITION = f"{PREFIX}topic", f"{PREFIX}partition"
OFFSET, TIMESTAMP = f"{PREFIX}offset", f"{PREFIX}timestamp"
NAMES = (PIPELINE, REASON, TOPIC, PARTITION, OFFSET, TIMESTAMP)
_SUFFIX = ".dead-letters"

Source = tuple[str, str, int, int]  # pipeline, topic, partition, offset


def default_topic(pipeline: str) -> str:
    """Where the dead letters of a pipeline go unless it says otherwise."""
    return f"{pipeline}{_SUFFIX}"


def position_group(pipeline: str) -> str:
    """The consumer group that remembers what was sent again."""
    return f"{pipeline}{_SUFFIX}"


class Message(Protocol):
    """What is used of a confluent_kafka.Message."""

    def partition(self) -> int: ...
    def offset(self) -> int: ...
    def timestamp(self) -> tuple[int, int]: ...
    def key(self) -> bytes | None: ...
    def value(self) -> bytes | None: ...
    def headers(self) -> Headers | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A record that could not be decoded; `headers` are its own, ours are the other fields."""

    pipeline: str
    reason: str
    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    # Where it lies in the dead-letter topic, and since when.
    letter_partition: int
    letter_offset: int
    letter_timestamp_ms: int

    @property
    def source(self) -> Source:
        """What makes it the same letter, however often it was written."""
        return self.pipeline, self.topic, self.partition, self.offset


def read_letter(message: Message) -> DeadLetter | None:
    """The letter in a message; None: it is none of ours."""
    headers = message.headers() or []
    # The last of each name: a dead letter that was read by a pipeline and failed again has two.
    ours = {name: (value or b"").decode("utf-8", "replace") for name, value in headers}
    try:
        return DeadLetter(
            pipeline=ours[PIPELINE],
            reason=ours[REASON],
            topic=ours[TOPIC],
            partition=int(ours[PARTITION]),
            offset=int(ours[OFFSET]),
            timestamp_ms=int(ours[TIMESTAMP]),
            key=message.key(),
            value=message.value(),
            headers=_without_ours(headers),
            letter_partition=message.partition(),
            letter_offset=message.offset(),
            letter_timestamp_ms=message.timestamp()[1],
        )
    except (KeyError, ValueError):
        return None


def _without_ours(headers: Headers) -> Headers:
    return [(name, value) for name, value in headers if name not in NAMES]
