"""A group's source offset as the target offset of the same record."""

from typing import NamedTuple

from headrace.mirror.end import End
from headrace.mirror.offset_map import Segment
from headrace.mirror.partition_copy import PartitionCopy
from headrace.mirror.reading import Stretch, read
from headrace.model import TopicPartition

_MOST_KNOWN = 1000  # of a partition; a following mirror meets new ones all the time


class Translated(NamedTuple):
    """`is_exact` is False when the source was compacted since: then it is earlier, never later."""

    offset: int
    is_exact: bool = True


class Translator:
    """Remembers what it had to read for."""

    def __init__(self, source: End) -> None:
        self._source = source
        self._known: dict[TopicPartition, dict[int, Translated]] = {}

    def translate(self, copy: PartitionCopy, source_offset: int) -> Translated:
        """Count the records before an offset; those not yet copied do not count."""
        if (exact := copy.map.exact(source_offset)) is not None:
            return Translated(exact)
        known = self._known.setdefault(copy.place, {})
        if len(known) > _MOST_KNOWN:
            known.clear()
        if source_offset not in known:
            segment = copy.map.segment(source_offset)
            known[source_offset] = self._count(copy.place, segment, source_offset)
        return known[source_offset]

    def _count(self, place: TopicPartition, segment: Segment, source_offset: int) -> Translated:
        low, high = segment
        assert high is not None, "behind the newest pair every offset is known"
        before, total = 0, 0
        for _, messages in read(self._source, {place: Stretch(low.source, high.source)}):
            total += len(messages)
            before += sum(1 for each in messages if int(each.offset() or 0) < source_offset)
        if total != high.target - low.target:
            return Translated(low.target, is_exact=False)
        return Translated(low.target + before)
