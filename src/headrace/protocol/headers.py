"""Request and response headers."""

from struct import Struct
from typing import NamedTuple

from headrace.protocol.errors import WireError
from headrace.protocol.primitives import Buffer, read_string, skip_tags
from headrace.protocol.versions import API_VERSIONS, is_flexible

REQUEST_START = Struct(">hhi")  # api key, version, correlation id
RESPONSE_START = Struct(">ii")  # frame size without itself, correlation id


class RequestHeader(NamedTuple):
    """What every request starts with; `body` is the position behind it."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: bytes | None
    body: int


def read_request_header(frame: Buffer, start: int, end: int) -> RequestHeader:
    """Read header v1 or v2; the client id is an ordinary nullable string in both."""
    if end - start < REQUEST_START.size:
        raise WireError(f"request of {end - start} bytes is shorter than its header")
    api_key, version, correlation_id = REQUEST_START.unpack_from(frame, start)
    position = start + REQUEST_START.size
    client_id, position = read_string(frame, position, end, is_compact=False)
    if is_flexible(api_key, version):
        position = skip_tags(frame, position, end)
    return RequestHeader(api_key, version, correlation_id, client_id, position)


def response_header(api_key: int, version: int, correlation_id: int, body_size: int) -> bytes:
    """Frame size and response header for a body of `body_size` bytes."""
    if is_flexible(api_key, version) and api_key != API_VERSIONS:
        return RESPONSE_START.pack(body_size + 5, correlation_id) + b"\0"
    return RESPONSE_START.pack(body_size + 4, correlation_id)
