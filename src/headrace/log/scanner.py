"""Walk a segment file batch by batch, believing nothing that was not checked.

Checksums are verified natively, a piece of the file at a time. A batch that fails is
reported as `Damage`, and the walk goes on at the next whole batch behind it, if any.
"""

from collections.abc import Callable
from typing import NamedTuple

from headrace.log.files import pread_fully
from headrace.records.batch import HEADER, HEADER_SIZE, LENGTH_PREFIX_SIZE, Buffer, peek_header
from headrace.records.scan import find_batch, scan_batches

PIECE_BYTES = 1024 * 1024
# Two attempts at finding the batch behind damage: a window finds batches up to half its size.
# The second covers Kafka's default socket.request.max.bytes of 100 MiB.
_RESYNC_WINDOWS = (16 * 1024 * 1024, 208 * 1024 * 1024)
_MAX_BATCH_BYTES = _RESYNC_WINDOWS[-1] // 2
_NO_LIMIT = 2**63 - 1

# Called for each good batch with its header's fields (in BatchHeader's order), its
# position in the file, and the buffer and position in it where the batch lies.
Visit = Callable[[tuple[int, ...], int, Buffer, int], None]


class Damage(NamedTuple):
    """Bytes [start, end) that are no valid batch, and the offsets they may have held."""

    start: int
    end: int
    offset_start: int
    offset_end: int
    reason: str


class Scan(NamedTuple):
    """What a walk found: where it stopped and the damage on the way.

    A last damage whose `end` is the end of the file had nothing valid behind it;
    its `offset_end` equals `next_offset` then, for nobody knows better here.
    """

    end: int
    next_offset: int
    damages: list[Damage]


def scan_file(
    fd: int,
    start: int,
    end: int,
    next_offset: int,
    visit: Visit | None = None,
    *,
    offset_limit: int = _NO_LIMIT,
    stops_at_damage: bool = False,
) -> Scan:
    """Check the batches in [start, end); `start` is a batch boundary.

    Offsets must rise from `next_offset` and stay below `offset_limit`: they lie outside
    the checksum, so order is all there is to check them by.
    """
    damages: list[Damage] = []
    position = start
    piece_bytes = PIECE_BYTES
    while position < end:
        piece = pread_fully(fd, min(piece_bytes, end - position), position)
        good, fault = scan_batches(piece, 0, len(piece))
        reached, next_offset, order_fault = _take_in(
            piece, good, position, next_offset, offset_limit, visit
        )
        position += reached
        if order_fault is None and 0 < reached < good:
            continue
        if order_fault is None and fault is None:
            if good == len(piece) and good:
                piece_bytes = PIECE_BYTES
                continue
            needed, fault = _bytes_needed(piece, good, end - position)
            if fault is None:
                piece_bytes = max(PIECE_BYTES, needed)
                continue
        reason = order_fault or fault or "unreadable"
        if stops_at_damage:
            damages.append(Damage(position, end, next_offset, next_offset, reason))
            break
        found = find_next_batch(fd, position + 1, end, next_offset, offset_limit)
        if found is None:
            damages.append(Damage(position, end, next_offset, next_offset, reason))
            break
        resumed, offset = found
        damages.append(Damage(position, resumed, next_offset, offset, reason))
        position, next_offset = resumed, offset
        piece_bytes = PIECE_BYTES
    return Scan(position, next_offset, damages)


def _take_in(
    piece: bytes,
    good: int,
    position: int,
    next_offset: int,
    offset_limit: int,
    visit: Visit | None,
) -> tuple[int, int, str | None]:
    """Walk the headers of piece[:good]: (bytes accepted, next offset, fault)."""
    at = 0
    unpack = HEADER.unpack_from
    while at < good:
        fields = unpack(piece, at)
        base_offset = fields[0]
        after = base_offset + fields[6] + 1
        if base_offset < next_offset or after <= base_offset:
            return at, next_offset, f"offset {base_offset} where {next_offset} or more must be"
        if after > offset_limit:
            return at, next_offset, f"offset {after - 1} is past the segment's end {offset_limit}"
        if base_offset > next_offset:
            # Compaction leaves gaps, and so does a flipped bit in the offset: then the
            # next batch goes back behind this one. Look at it before believing the jump.
            following = at + fields[1] + LENGTH_PREFIX_SIZE
            if following < good:
                if next_offset <= unpack(piece, following)[0] < after:
                    return at, next_offset, f"offset {base_offset} jumps ahead of its successor"
            elif at:
                return at, next_offset, None
        if visit is not None:
            visit(fields, position + at, piece, at)
        next_offset = after
        at += fields[1] + LENGTH_PREFIX_SIZE
    return at, next_offset, None


def _bytes_needed(piece: bytes, good: int, left: int) -> tuple[int, str | None]:
    """How many bytes from the incomplete batch on make it whole, or why none can."""
    header = peek_header(piece, good)
    if header is None:
        if left < HEADER_SIZE:
            return 0, f"{left} bytes are fewer than a batch header"
        return HEADER_SIZE, None
    if header.size > left:
        return 0, f"a batch of {header.size} bytes where {left} are left"
    if header.size > _MAX_BATCH_BYTES:
        return 0, f"a batch of {header.size} bytes is beyond reason"
    return header.size, None


def find_next_batch(
    fd: int, start: int, end: int, min_offset: int, offset_limit: int = _NO_LIMIT
) -> tuple[int, int] | None:
    """(position, base offset) of the first whole valid batch at or behind `start`."""
    for window in _RESYNC_WINDOWS:
        position = start
        while position < end:
            piece = pread_fully(fd, min(window, end - position), position)
            at = 0
            while (at := find_batch(piece, at, len(piece), min_offset)) >= 0:
                fields = HEADER.unpack_from(piece, at)
                if fields[0] + fields[6] < offset_limit:
                    return position + at, fields[0]
                at += 1
            position += window // 2
        if end - start <= window // 2:
            break
    return None
