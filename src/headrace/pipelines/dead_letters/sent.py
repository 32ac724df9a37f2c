"""What was sent again of a dead-letter topic, kept as committed offsets of a consumer group.

All letters below a partition's offset were sent. Those sent out of turn, above it, stand in the
metadata of the commit as `sent 12,15-20`; Kafka takes 4096 bytes of that. The metadata begins with
the topic's id, `topic IGeoTMyITOmZRfpMOVxqOQ; `: in one that was deleted and made again other
letters lie at these offsets, and none of them was sent.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

MAX_METADATA_BYTES = 4096  # Kafka's offset.metadata.max.bytes unless it was changed
_PREFIX = "sent "
_TOPIC = re.compile(r"topic (?P<id>\S+); ")
_RANGE = re.compile(r"(\d+)(?:-(\d+))?")


class TooManyRangesError(ValueError):
    """More single letters were sent out of turn than a commit can remember."""


@dataclass(slots=True)
class Sent:
    """Of one partition: every offset below `position`, and `later`."""

    position: int = 0
    later: set[int] = field(default_factory=set)

    def __contains__(self, offset: object) -> bool:
        """Whether the letter at this offset was sent."""
        return isinstance(offset, int) and (offset < self.position or offset in self.later)

    def add(self, offsets: Iterable[int], letters: Iterable[int], end: int) -> None:
        """Take in what was sent now. `letters` are all there are, below `end`."""
        self.later.update(offsets)
        unsent = [offset for offset in letters if offset not in self]
        # Between letters may lie offsets without one; they stop nobody.
        self.position = max(self.position, min(unsent, default=end))
        self.later = {offset for offset in self.later if offset >= self.position}

    def metadata(self, topic_id: str = "") -> str:
        """What goes into the commit; TooManyRangesError when it does not."""
        text = f"topic {topic_id}; " if topic_id else ""
        if self.later:
            text += _PREFIX + ",".join(_ranges(sorted(self.later)))
        if len(text) > MAX_METADATA_BYTES:
            raise TooManyRangesError(len(text))
        return text


def read_sent(position: int, metadata: str | None, topic_id: str = "") -> Sent:
    """What a commit says of the topic with this id; a negative position is none."""
    metadata = metadata or ""
    if noted := _TOPIC.match(metadata):
        if topic_id and noted["id"] != topic_id:
            return Sent()
        metadata = metadata[noted.end() :]
    later = set[int]()
    if metadata.startswith(_PREFIX):
        for word in metadata[len(_PREFIX) :].split(","):
            if match := _RANGE.fullmatch(word):
                later.update(range(int(match[1]), int(match[2] or match[1]) + 1))
    return Sent(max(position, 0), later)


def _ranges(offsets: list[int]) -> Iterable[str]:
    start = previous = offsets[0]
    for offset in [*offsets[1:], -1]:
        if offset == previous + 1:
            previous = offset
            continue
        yield str(start) if start == previous else f"{start}-{previous}"
        start = previous = offset
