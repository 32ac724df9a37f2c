"""The five codecs a batch's records may be in.

Output is bounded: what a stranger sends never grows beyond `max_bytes` in memory.
"""

import mmap
import struct
from collections.abc import Callable
from enum import IntEnum
from itertools import chain

import cramjam

from headrace.records.batch import Buffer
from headrace.records.errors import DecompressedTooLargeError, UndecodableRecordsError

# Just above Kafka's largest request (100 MiB): no batch that a producer could
# send plain is refused for being compressed, and no bomb costs more than this.
MAX_DECOMPRESSED_BYTES = 128 * 2**20

# Java's zstd default; cramjam's own is 11, far too slow for a broker.
_ZSTD_LEVEL = 3

# The framing of Java's snappy streams: this header, then blocks with a length each.
_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK_BYTES = 32 * 1024
_BLOCK_LENGTH = struct.Struct(">i")

# Records shrink three- to tenfold as a rule, so the first guess is usually enough.
_GROWTH = 8
_SMALLEST_OUTPUT_BYTES = 4096
# Larger outputs come from the kernel, which clears a page when it is first written: to clear
# 128 MiB here would take a tenth of a second, under the interpreter's lock.
_LARGE_OUTPUT_BYTES = 1024 * 1024
# cramjam has one exception for everything; this is what Rust says of a full buffer.
_ROOM_RAN_OUT = "failed to write whole buffer"


class Allowance:
    """How many decompressed bytes may still come of what one client has sent."""

    __slots__ = ("left_bytes",)

    def __init__(self, left_bytes: int = MAX_DECOMPRESSED_BYTES) -> None:
        self.left_bytes = left_bytes


class Codec(IntEnum):
    """Bits 0-2 of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


def compress(codec: int, data: Buffer) -> bytes:
    """`data` in the form that Java's clients read."""
    match codec:
        case Codec.NONE:
            return bytes(data)
        case Codec.GZIP:
            return bytes(cramjam.gzip.compress(data))
        case Codec.SNAPPY:
            return _compress_snappy(data)
        case Codec.LZ4:
            # Java's reader refuses blocks that lean on earlier ones.
            compressor = cramjam.lz4.Compressor(block_linked=False, content_checksum=False)
            compressor.compress(data)
            return bytes(compressor.finish())
        case Codec.ZSTD:
            return bytes(cramjam.zstd.compress(data, level=_ZSTD_LEVEL))
        case _:
            raise ValueError(f"no codec has the number {codec}")


def decompress(codec: int, data: Buffer, max_bytes: int = MAX_DECOMPRESSED_BYTES) -> Buffer:
    """The plain bytes; UndecodableRecordsError when there are none.

    DecompressedTooLargeError, one of those, when there are more than `max_bytes`.
    """
    match codec:
        case Codec.NONE:
            return data
        case Codec.GZIP:
            return _decompress_bounded("gzip", cramjam.gzip.decompress_into, data, max_bytes)
        case Codec.SNAPPY:
            return _decompress_snappy(data, max_bytes)
        case Codec.LZ4:
            return _decompress_bounded("lz4", cramjam.lz4.decompress_into, data, max_bytes)
        case Codec.ZSTD:
            return _decompress_bounded("zstd", cramjam.zstd.decompress_into, data, max_bytes)
        case _:
            raise UndecodableRecordsError(f"no codec has the number {codec}")


def _room(size: int) -> memoryview:
    """Memory to decompress into."""
    return memoryview(bytearray(size) if size <= _LARGE_OUTPUT_BYTES else mmap.mmap(-1, size))


def _decompress_bounded(
    name: str, decompress_into: Callable[[Buffer, Buffer], int], data: Buffer, max_bytes: int
) -> memoryview:
    size = min(max(len(data) * _GROWTH, _SMALLEST_OUTPUT_BYTES), max_bytes)
    while True:
        output = _room(size)
        try:
            return output[: decompress_into(data, output)]
        except cramjam.DecompressionError as error:
            # Only want of room is worth another try: were damage retried, a few bytes of
            # garbage would make the broker allocate max_bytes.
            if _ROOM_RAN_OUT not in str(error):
                raise UndecodableRecordsError(f"{name} data does not decompress: {error}") from None
            if size >= max_bytes:
                raise DecompressedTooLargeError(name, max_bytes) from None
            size = min(size * _GROWTH, max_bytes)


def _compress_snappy(data: Buffer) -> bytes:
    view = memoryview(data)
    blocks = (
        bytes(cramjam.snappy.compress_raw(view[start : start + _XERIAL_BLOCK_BYTES]))
        for start in range(0, len(view), _XERIAL_BLOCK_BYTES)
    )
    framed = chain.from_iterable((_BLOCK_LENGTH.pack(len(block)), block) for block in blocks)
    return b"".join(chain((_XERIAL_HEADER,), framed))


def _decompress_snappy(data: Buffer, max_bytes: int) -> memoryview:
    view = memoryview(data)
    blocks = _xerial_blocks(view) if view[: len(_XERIAL_MAGIC)] == _XERIAL_MAGIC else [view]
    try:
        sizes = [cramjam.snappy.decompress_raw_len(block) for block in blocks]
        if sum(sizes) > max_bytes:
            raise DecompressedTooLargeError("snappy", max_bytes)
        output = _room(sum(sizes))
        position = 0
        for block, size in zip(blocks, sizes, strict=True):
            cramjam.snappy.decompress_raw_into(block, output[position : position + size])
            position += size
        return output
    except cramjam.DecompressionError as error:
        raise UndecodableRecordsError(f"snappy data does not decompress: {error}") from None


def _xerial_blocks(view: memoryview) -> list[memoryview]:
    blocks = []
    position = len(_XERIAL_HEADER)
    if len(view) < position:
        raise UndecodableRecordsError("snappy data ends inside its header")
    while position < len(view):
        start = position + _BLOCK_LENGTH.size
        if start > len(view):
            raise UndecodableRecordsError("snappy data ends inside a block's length")
        (length,) = _BLOCK_LENGTH.unpack_from(view, position)
        position = start + length
        if length <= 0 or position > len(view):
            raise UndecodableRecordsError(f"snappy data has a block of {length} bytes")
        blocks.append(view[start:position])
    return blocks
