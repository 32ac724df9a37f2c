"""Every cold message through kio's schemas, always seen at its newest version.

Requests are *lifted*: read as sent, returned as the newest version's type.
Responses are *lowered*: built by handlers as the newest type, written with the
fields the asked-for version has. Handlers therefore know one type per message.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

from kio.index import load_request_schema, load_response_schema

from headrace.protocol.entity_reader import Cursor, Reader, entity_reader
from headrace.protocol.entity_writer import Writer, entity_writer
from headrace.protocol.older_versions import OLD_REQUESTS, OLD_RESPONSES


def decode_request(api_key: int, version: int, newest: int, payload: bytes, offset: int) -> Any:
    """Read the request body at `offset` and return it as the newest version's type."""
    # Bytes behind the request are ignored, as Kafka does: librdkafka 2.16 sends some.
    return _request_reader(api_key, version, newest)(Cursor(payload, offset))


class Encoded(bytes):
    """The body of an answer whose handler has written it already, in the version asked for."""

    __slots__ = ()


def encode_response(api_key: int, version: int, response: Any) -> bytes:
    """Write `response`, an object of the newest type, as `version` has it."""
    if type(response) is Encoded:
        return response
    out = bytearray()
    _response_writer(api_key, version)(out, response)
    return bytes(out)


@cache
def _request_reader(api_key: int, version: int, newest: int) -> Reader:
    source = load_request_schema(api_key, version)
    target = load_request_schema(api_key, newest)
    for old_form in OLD_REQUESTS.get(api_key, ()):
        if version <= old_form.until:
            return _lifting(entity_reader(source, source), old_form.lift, target)
    return entity_reader(source, target)


def _lifting(read: Reader, lift: Callable[[Any, Any], Any], target: Any) -> Reader:
    return lambda cursor: lift(read(cursor), target)


@cache
def _response_writer(api_key: int, version: int) -> Writer:
    write = entity_writer(load_response_schema(api_key, version))
    old_form = OLD_RESPONSES.get(api_key)
    if old_form is not None and version <= old_form.until:
        return lambda out, response: write(out, old_form.lower(response))
    return write
