"""Kafka's `.snapshot` files: each producer's last batch, as of one offset.

Version i16 = 1, CRC-32C u32 of all behind it, count i32, then 46 bytes a producer. The time in
them is when the broker last heard of the producer; Kafka writes the largest timestamp of the
last batch there, and does with ours what we do: it forgets the producer that long after.
"""

import struct
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path

from crc32c import crc32c

from headrace.log.files import replace_file
from headrace.log.names import SNAPSHOT_SUFFIX, parse_segment_file, segment_file
from headrace.log.producer_state import NO_OFFSET, ProducerBatch, ProducerEntry
from headrace.records.batch import NO_SEQUENCE, NO_TIMESTAMP

_HEADER = struct.Struct(">hI")
_COUNT = struct.Struct(">i")
_ENTRY = struct.Struct(">qhiqiqiq")
_VERSION = 1


class SnapshotError(ValueError):
    """The bytes are no snapshot this version can read."""


def encode_snapshot(entries: dict[int, ProducerEntry]) -> bytes:
    body = [_COUNT.pack(len(entries))]
    for producer_id, entry in entries.items():
        batches = entry.batches
        last = batches[-1] if batches else ProducerBatch(NO_SEQUENCE, NO_OFFSET, 0, NO_TIMESTAMP)
        body.append(
            _ENTRY.pack(
                producer_id,
                entry.epoch,
                last.last_sequence,
                last.last_offset,
                last.offset_delta,
                entry.last_append_ms,
                entry.coordinator_epoch,
                entry.txn_first_offset,
            )
        )
    data = b"".join(body)
    return _HEADER.pack(_VERSION, crc32c(data)) + data


def decode_snapshot(data: bytes) -> dict[int, ProducerEntry]:
    if len(data) < _HEADER.size + _COUNT.size:
        raise SnapshotError(f"{len(data)} bytes are too few")
    version, crc = _HEADER.unpack_from(data)
    if version != _VERSION:
        raise SnapshotError(f"version {version} is not {_VERSION}")
    if crc != crc32c(data[_HEADER.size :]):
        raise SnapshotError("its checksum does not match")
    (count,) = _COUNT.unpack_from(data, _HEADER.size)
    entries_at = _HEADER.size + _COUNT.size
    if len(data) != entries_at + count * _ENTRY.size:
        raise SnapshotError(f"{len(data)} bytes do not hold {count} producers")
    entries: dict[int, ProducerEntry] = {}
    for fields in _ENTRY.iter_unpack(data[entries_at:]):
        producer_id, epoch, sequence, offset, delta, append_ms, coordinator_epoch, first = fields
        batches = (ProducerBatch(sequence, offset, delta, NO_TIMESTAMP),) if offset >= 0 else ()
        entries[producer_id] = ProducerEntry(
            epoch, batches, append_ms, coordinator_epoch, first, is_partial=True
        )
    return entries


class ProducerSnapshots:
    """The snapshot files of one partition.

    `latest` is the offset of the newest one, 0 without any: none is taken at or below it.
    None is ever synced here: the next sync of the log covers it, and recovery can do without.
    """

    __slots__ = ("_directory", "latest")

    def __init__(self, directory: Path) -> None:
        """Of a directory that is being opened; `find_latest` when its files are settled."""
        self._directory = directory
        self.latest = 0

    def find_latest(self) -> None:
        """Have `latest` from the files that are there."""
        self.latest = max(self.offsets(), default=0)

    def offsets(self) -> list[int]:
        """The offsets of all snapshots in the directory, ascending."""
        parsed = [parse_segment_file(entry.name) for entry in self._directory.iterdir()]
        return sorted(found[0] for found in parsed if found and found[1] == SNAPSHOT_SUFFIX)

    def load(
        self, max_offset: int, repairs: list[str]
    ) -> tuple[int, dict[int, ProducerEntry]] | None:
        """(offset, entries) of the latest sound snapshot at or before `max_offset`.

        Unsound ones on the way are removed: what they said is rebuilt from the log.
        """
        for offset in reversed(self.offsets()):
            if offset > max_offset:
                continue
            path = self._path(offset)
            try:
                return offset, decode_snapshot(path.read_bytes())
            except SnapshotError as error:
                repairs.append(f"{path}: removed, {error}")
                with suppress(FileNotFoundError):
                    path.unlink()
        return None

    def write(self, offset: int, entries: dict[int, ProducerEntry]) -> Path:
        """Write the producers' state as of `offset`, whatever is there."""
        path = self._path(offset)
        replace_file(path, encode_snapshot(entries), is_durable=False)
        return path

    def take(self, offset: int, entries: dict[int, ProducerEntry]) -> Path | None:
        """As `write`, as Kafka does at each roll and clean stop; None when it is nothing newer.

        None also on a full disk: a missing snapshot only makes a later start read more.
        """
        if offset <= self.latest:
            return None
        with suppress(OSError):
            path = self.write(offset, entries)
            self.latest = offset
            return path
        return None

    def take_back(self, latest: int, offsets: Iterable[int]) -> None:
        """Undo what was taken at `offsets`, since when `latest` was the newest.

        They hold batches that never were: other ones will have their offsets.
        """
        for offset in offsets:
            if offset > latest:
                with suppress(OSError):
                    self._path(offset).unlink()
        self.latest = latest

    def remove(self, offset: int) -> None:
        """The segment that begins there is gone."""
        self._path(offset).unlink(missing_ok=True)

    def remove_strays(self, base_offsets: Collection[int], end_offset: int) -> None:
        """Keep each segment's snapshot and the latest one; none from beyond the log."""
        offsets = self.offsets()
        latest = max((offset for offset in offsets if offset <= end_offset), default=None)
        for offset in offsets:
            if offset > end_offset or (offset not in base_offsets and offset != latest):
                with suppress(OSError):
                    self._path(offset).unlink()

    def _path(self, offset: int) -> Path:
        return segment_file(self._directory, offset, SNAPSHOT_SUFFIX)
