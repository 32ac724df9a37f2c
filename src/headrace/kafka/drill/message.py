"""What a drill's message says about itself: which stream it belongs to and its number there.

A stream is one publisher's messages of one key. Keys are chosen so that librdkafka's
`consistent` partitioner (CRC-32 of the key) gives every publisher one stream in each partition.
"""

import struct
import zlib
from itertools import count
from typing import NamedTuple

PARTITIONER = "consistent"
_HEADER = struct.Struct(">4sIQ")
_MAGIC = b"hrd1"
MIN_MESSAGE_BYTES = _HEADER.size


class Stream(NamedTuple):
    """One publisher's messages of one key, all in one partition."""

    number: int
    publisher: int
    key: bytes
    partition: int


def make_streams(publishers: int, partitions: int) -> list[Stream]:
    """One stream for each publisher in each partition."""
    streams = list[Stream]()
    for publisher in range(publishers):
        for partition in range(partitions):
            key = _key_for(publisher, partition, partitions)
            streams.append(Stream(len(streams), publisher, key, partition))
    return streams


def _key_for(publisher: int, partition: int, partitions: int) -> bytes:
    for number in count():
        key = b"publisher-%d-key-%d" % (publisher, number)
        if zlib.crc32(key) % partitions == partition:
            return key
    raise AssertionError("count() has no end")


def padding(message_bytes: int) -> bytes:
    """What fills a message up to its size; not all the same byte, or codecs would love it."""
    length = max(0, message_bytes - MIN_MESSAGE_BYTES)
    return (bytes(range(256)) * (length // 256 + 1))[:length]


def encode(stream: int, sequence: int, fill: bytes) -> bytes:
    """The value of a message."""
    return _HEADER.pack(_MAGIC, stream, sequence) + fill


def decode(value: bytes | None) -> tuple[int, int] | None:
    """Stream and sequence; None for what is no message of a drill."""
    if value is None or len(value) < MIN_MESSAGE_BYTES:
        return None
    magic, stream, sequence = _HEADER.unpack_from(value)
    return (stream, sequence) if magic == _MAGIC else None
