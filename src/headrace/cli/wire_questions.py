"""The two questions librdkafka cannot ask, over a bare socket: ApiVersions and DescribeLogDirs.

Only brokers without TLS and SASL can be asked; anything unexpected is answered with None, since
what these tell is good to know and nothing depends on it.
"""

import socket
from struct import Struct, error
from typing import BinaryIO

from headrace.protocol.errors import WireError
from headrace.protocol.headers import REQUEST_START
from headrace.protocol.primitives import (
    INT32,
    read_array_length,
    read_int16,
    read_int32,
    read_string,
    write_string,
)

_API_VERSIONS, _DESCRIBE_LOG_DIRS = 18, 35
_CLIENT_ID = write_string(b"headrace", is_compact=False)
_API_RANGE = Struct(">hhh")  # key, oldest, newest version
_REPLICA = Struct(">iqq?")  # partition, size, lag, whether it is moving here
_MAX_ANSWER_BYTES = 64 * 1024 * 1024

ApiRanges = dict[int, tuple[int, int]]


def ask_api_versions(address: tuple[str, int], timeout_s: float) -> ApiRanges | None:
    """Oldest and newest version of each API the broker serves, by API key."""
    answer = _ask(address, _API_VERSIONS, 0, b"", timeout_s)
    if answer is None:
        return None
    try:
        code, position = read_int16(answer, 0, len(answer))
        count, position = read_array_length(answer, position, len(answer), is_compact=False)
        body = answer[position : position + count * _API_RANGE.size]
        return (
            None if code else {key: (low, high) for key, low, high in _API_RANGE.iter_unpack(body)}
        )
    except (WireError, error):
        return None


def ask_log_sizes(address: tuple[str, int], timeout_s: float) -> dict[tuple[str, int], int] | None:
    """Bytes on the disk of this broker, by topic and partition."""
    all_topics = INT32.pack(-1)
    answer = _ask(address, _DESCRIBE_LOG_DIRS, 1, all_topics, timeout_s)
    if answer is None:
        return None
    try:
        return _read_log_sizes(answer)
    except (WireError, error):
        return None


def _read_log_sizes(answer: bytes) -> dict[tuple[str, int], int]:
    sizes = dict[tuple[str, int], int]()
    end = len(answer)
    directories, position = read_array_length(answer, 4, end, is_compact=False)
    for _ in range(directories):
        _code, position = read_int16(answer, position, end)
        _path, position = read_string(answer, position, end, is_compact=False)
        topics, position = read_array_length(answer, position, end, is_compact=False)
        for _ in range(topics):
            name, position = read_string(answer, position, end, is_compact=False)
            replicas, position = read_array_length(answer, position, end, is_compact=False)
            for _ in range(replicas):
                partition, size_bytes, _lag, is_future = _REPLICA.unpack_from(answer, position)
                position += _REPLICA.size
                if name is not None and not is_future:
                    sizes[name.decode(), partition] = size_bytes
    return sizes


def _ask(
    address: tuple[str, int], api_key: int, version: int, body: bytes, timeout_s: float
) -> bytes | None:
    """Send one request with header v1 and return the body of its answer."""
    request = REQUEST_START.pack(api_key, version, 1) + _CLIENT_ID + body
    try:
        with socket.create_connection(address, timeout_s) as connection:
            connection.sendall(INT32.pack(len(request)) + request)
            with connection.makefile("rb") as answers:
                return _read_frame(answers)
    except (OSError, WireError):
        return None


def _read_frame(answers: BinaryIO) -> bytes:
    head = answers.read(8)
    size, _ = read_int32(head, 0, len(head))
    if not 4 <= size <= _MAX_ANSWER_BYTES:
        raise WireError(f"an answer of {size} bytes is none of Kafka's")
    body = answers.read(size - 4)
    if len(body) != size - 4:
        raise WireError(f"the answer ends after {len(body)} bytes of {size - 4}")
    return body
