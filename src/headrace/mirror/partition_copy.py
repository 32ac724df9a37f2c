"""How far the copy of one partition has come, and what an earlier run left at the target."""

from array import array
from collections.abc import Iterable
from typing import Any, NamedTuple
from zlib import crc32

from headrace.mirror.content import content_of
from headrace.mirror.identity import beyond_repair
from headrace.mirror.offset_map import OffsetMap, Pair
from headrace.mirror.state import PartitionCheckpoint, Verified
from headrace.model import TopicPartition


class CopyMark(NamedTuple):
    """As many records as `target` lie before `source`; `crc` is the chain over them."""

    source: int
    target: int
    crc: int


class Overlap:
    """Checksums of what lies at the target behind a checkpoint: written, but not noted.

    Records that retention or compaction has taken since are not compared.
    """

    def __init__(self, start: int, end: int) -> None:
        self.start, self.end = start, end
        self._crcs = array("I", bytes(4 * (end - start)))
        self._is_there = bytearray(end - start)

    def put(self, messages: Iterable[Any]) -> None:
        """Take in records of the target."""
        for message in messages:
            index = message.offset() - self.start
            self._crcs[index] = crc32(b"".join(content_of(message)))
            self._is_there[index] = 1

    def is_same(self, offset: int, pieces: list[bytes]) -> bool:
        """Whether the target has this record at this offset, or none any more."""
        index = offset - self.start
        return not self._is_there[index] or self._crcs[index] == crc32(b"".join(pieces))


class PartitionCopy:
    """`sent` runs ahead of `acked`. `caught_up_at`: the source's end when the copy began."""

    __slots__ = (
        "_first_target",
        "acked",
        "acked_at",
        "caught_up_at",
        "is_probing",
        "map",
        "messages",
        "noted",
        "overlap",
        "place",
        "sent",
        "size_bytes",
        "started_at",
        "verified",
    )

    def __init__(
        self,
        place: TopicPartition,
        checkpoint: PartitionCheckpoint,
        *,
        caught_up_at: int,
        overlap: Overlap | None = None,
    ) -> None:
        self.place = place
        self.sent = CopyMark(checkpoint.source, checkpoint.target, checkpoint.crc)
        self.acked = self.sent
        self.acked_at = 0.0  # the time of the last acknowledgement, or of sending after a pause
        self.noted = checkpoint
        self.map = OffsetMap(checkpoint.pairs)
        self.verified = checkpoint.verified
        self.overlap = overlap
        # After an unclean end the first record goes alone: where it lands shows whether the
        # target holds more than it told.
        self.is_probing = not checkpoint.is_clean
        self.caught_up_at = caught_up_at
        self.started_at = checkpoint.source
        self._first_target = checkpoint.target
        self.messages = 0
        self.size_bytes = 0

    @property
    def is_caught_up(self) -> bool:
        return self.sent.source >= self.caught_up_at

    @property
    def is_settled(self) -> bool:
        """Whether everything sent has arrived."""
        return self.acked.target == self.sent.target

    @property
    def arrived(self) -> int:
        """Records known to have arrived since the copy was begun or gone on with."""
        return self.acked.target - self._first_target

    @property
    def position(self) -> int:
        """The source offset to read next."""
        return self.sent.source

    def passed(self, source: int) -> None:
        """Nothing visible lies between the last record and this source offset."""
        if source > self.sent.source:
            self.sent = self.sent._replace(source=source)
        if self.is_settled:
            self.acked = self.sent
            self.map.add(self.acked.source, self.acked.target)

    def acknowledged(self, mark: CopyMark) -> None:
        """Everything up to this mark has arrived."""
        self.acked = self.sent if mark.target == self.sent.target else mark
        self.map.add(self.acked.source, self.acked.target)

    def checkpoint(self, *, is_clean: bool) -> PartitionCheckpoint:
        """What may be noted now."""
        return PartitionCheckpoint(*self.acked, is_clean, self.verified, self.map.pairs)

    def check_reach(self, source_start: int) -> None:
        """What has arrived without a note must still be at the source, to be compared."""
        if self.overlap is not None and source_start > self.sent.source:
            raise beyond_repair(
                self.place,
                f"the source has removed messages from {self.sent.source} to {source_start} since "
                "the last run was cut off, so where to go on is not known",
            )

    def pass_over(self, messages: list[Any]) -> list[Any]:
        """Compare what has arrived already with the source; return the records that have not."""
        overlap = self.overlap
        if overlap is None:
            return messages
        source, target, crc = self.sent
        for index, message in enumerate(messages):
            if target >= overlap.end:
                messages = messages[index:]
                break
            pieces = content_of(message)
            if not overlap.is_same(target, pieces):
                raise beyond_repair(
                    self.place,
                    f"the target's record {target} is not the source's at offset "
                    f"{message.offset()}; somebody else wrote to the target, or the source was "
                    "compacted since the last run",
                )
            crc = crc32(b"".join(pieces), crc)
            source, target = message.offset() + 1, target + 1
        else:
            messages = []
        self.sent = self.acked = CopyMark(source, target, crc)
        self.map.add(source, target)
        if target >= overlap.end:
            self.overlap = None
        return messages


def first_checkpoint(source_start: int) -> PartitionCheckpoint:
    """A copy that begins at this source offset."""
    return PartitionCheckpoint(
        source_start, 0, 0, is_clean=True, verified=Verified(), pairs=(Pair(source_start, 0),)
    )
