"""The target read again, and held against the chain of checksums that ran with the copy.

What was found right once is not read again: a later run begins where the last one ended.
"""

import time
from collections.abc import Callable, Collection
from zlib import crc32

from headrace.mirror.content import content_of
from headrace.mirror.endpoint import Endpoint
from headrace.mirror.identity import beyond_repair
from headrace.mirror.interface import VERIFYING, MirrorListener, MirrorProgress
from headrace.mirror.partition_copy import PartitionCopy
from headrace.mirror.reading import read
from headrace.mirror.state import Verified
from headrace.model import TopicPartition


def verify(
    target: Endpoint,
    copies: Collection[PartitionCopy],
    listener: MirrorListener,
    *,
    may_lack: Callable[[str], bool],
) -> set[TopicPartition]:
    """Compare every partition; returns those the target no longer has whole.

    `may_lack` tells of a topic whether retention or compaction may act on it already.
    """
    stretches = {copy.place: range(copy.verified.target, copy.acked.target) for copy in copies}
    crcs = {copy.place: copy.verified.crc for copy in copies}
    counts = dict.fromkeys(stretches, 0)
    total = sum(each.stop - each.start for each in stretches.values())
    began_at, size_bytes, done = time.monotonic(), 0, 0
    for place, messages in read(target, stretches, is_committed_only=False):
        parts = list[bytes]()
        for message in messages:
            parts += content_of(message)
        whole = b"".join(parts)
        crcs[place] = crc32(whole, crcs[place])
        counts[place] += len(messages)
        done += len(messages)
        size_bytes += len(whole)
        seconds = time.monotonic() - began_at
        listener.progress(MirrorProgress(VERIFYING, done, total, done, size_bytes, seconds))
    lacking = set[TopicPartition]()
    for copy in copies:
        place, stretch = copy.place, stretches[copy.place]
        is_whole = copy.verified.is_whole
        if counts[place] != stretch.stop - stretch.start and may_lack(place.topic):
            lacking.add(place)
            is_whole = False
        elif counts[place] != stretch.stop - stretch.start:
            raise beyond_repair(
                place,
                f"the target has {counts[place]} of the {stretch.stop - stretch.start} records "
                f"from offset {stretch.start} on",
            )
        elif crcs[place] != copy.acked.crc:
            raise beyond_repair(
                place,
                f"the checksum over offsets {stretch.start} to {stretch.stop} of the target is not "
                "that of what was copied",
            )
        copy.verified = Verified(copy.acked.target, copy.acked.crc, is_whole)
    return lacking
