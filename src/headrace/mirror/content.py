"""What of a record has to arrive: key, value, timestamp and headers, as bytes for a checksum.

Lengths come before contents, -1 for null: no two different records have the same bytes.
"""

import struct
from collections.abc import Sequence
from typing import Any

HEAD = struct.Struct(">iiqi").pack  # length of key and value, timestamp, number of headers
_LENGTHS = struct.Struct(">ii").pack
NULL = -1

Headers = Sequence[tuple[str, bytes | None]]


def content(
    key: bytes | None, value: bytes | None, timestamp_ms: int, headers: Headers | None
) -> list[bytes]:
    """The record as pieces of bytes; joined, they are the same for the same record only."""
    pieces = [
        HEAD(
            NULL if key is None else len(key),
            NULL if value is None else len(value),
            timestamp_ms,
            len(headers) if headers else 0,
        ),
        key or b"",
        value or b"",
    ]
    for name, text in headers or ():
        label = name.encode("utf-8", "surrogateescape")
        pieces += (
            _LENGTHS(len(label), NULL if text is None else len(text)),
            label,
            text or b"",
        )
    return pieces


def content_of(message: Any) -> list[bytes]:
    """The same of a confluent_kafka Message."""
    return content(
        message.key(), message.value(), writable_ms(message.timestamp()[1]), message.headers()
    )


def writable_ms(timestamp_ms: int) -> int:
    """The timestamp as librdkafka can write it: it takes 0 for "now", so 0 becomes 1."""
    return timestamp_ms or 1
