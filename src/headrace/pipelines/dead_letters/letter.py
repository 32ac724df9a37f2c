"""One dead letter as it lies in its topic."""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

Headers = list[tuple[str, bytes | None]]

PREFIX = "headrace."
PIPELINE, REASON = f"{PREFIX}pipeline", f"{PREFIX}reason"
CLUSTER_ID, TOPIC_ID = f"{PREFIX}cluster-id", f"{PREFIX}topic-id"
TOPIC, PARTITION = f"{PREFIX}topic", f"{PREFIX}partition"
OFFSET, TIMESTAMP = f"{PREFIX}offset", f"{PREFIX}timestamp"
# Only in a letter that was too large for its topic.
CUT, VALUE_SIZE, VALUE_SHA256 = f"{PREFIX}cut", f"{PREFIX}value-size", f"{PREFIX}value-sha256"
NAMES = (
    PIPELINE, REASON, CLUSTER_ID, TOPIC_ID, TOPIC, PARTITION, OFFSET, TIMESTAMP,
    CUT, VALUE_SIZE, VALUE_SHA256,
)  # fmt: skip
SUFFIX = ".dead-letters"


class LetterSource(NamedTuple):
    """What makes it the same letter, however often it was written.

    A topic that was deleted and made again has other records at the same offsets, so its id is
    in here, and its cluster's. Both are empty in letters from before they were written down.
    """

    pipeline: str
    cluster_id: str
    topic_id: str
    topic: str
    partition: int
    offset: int


def default_topic(pipeline: str) -> str:
    """Where the dead letters of a pipeline go unless it says otherwise."""
    return f"{pipeline}{SUFFIX}"


def position_group(pipeline: str) -> str:
    """The consumer group that remembers what was sent again."""
    return f"{pipeline}{SUFFIX}"


class LetterMessage(Protocol):
    """What is used of a message as librdkafka has it."""

    def partition(self) -> int: ...
    def offset(self) -> int: ...
    def timestamp(self) -> tuple[int, int]: ...
    def key(self) -> bytes | None: ...
    def value(self) -> bytes | None: ...
    def headers(self) -> Headers | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A record that could not be decoded; `headers` are its own, ours are the other fields."""

    source: LetterSource
    reason: str
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    # Where it lies in the dead-letter topic, and since when.
    letter_partition: int
    letter_offset: int
    letter_timestamp_ms: int
    # What was cut off to make it fit its topic, in words; empty: nothing.
    cut: str = ""
    # Of a value that was cut: its size before.
    value_size: int | None = None


def read_letter(message: LetterMessage) -> DeadLetter | None:
    """The letter in a message; None: it is none of ours."""
    headers = message.headers() or []
    # The last of each name: a dead letter that was read by a pipeline and failed again has two.
    ours = {name: (value or b"").decode("utf-8", "replace") for name, value in headers}
    try:
        return DeadLetter(
            source=LetterSource(
                pipeline=ours[PIPELINE],
                cluster_id=ours.get(CLUSTER_ID, ""),
                topic_id=ours.get(TOPIC_ID, ""),
                topic=ours[TOPIC],
                partition=int(ours[PARTITION]),
                offset=int(ours[OFFSET]),
            ),
            reason=ours[REASON],
            timestamp_ms=int(ours[TIMESTAMP]),
            key=message.key(),
            value=message.value(),
            headers=_without_ours(headers),
            letter_partition=message.partition(),
            letter_offset=message.offset(),
            letter_timestamp_ms=message.timestamp()[1],
            cut=ours.get(CUT, ""),
            value_size=int(ours[VALUE_SIZE]) if VALUE_SIZE in ours else None,
        )
    except (KeyError, ValueError):
        return None


def _without_ours(headers: Headers) -> Headers:
    return [(name, value) for name, value in headers if name not in NAMES]
