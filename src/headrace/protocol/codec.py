"""Every cold message through kio's schemas, always seen at its newest version.

Requests are *lifted*: read as sent, returned as the newest version's type.
Responses are *lowered*: built by handlers as the newest type, written with the
fields the asked-for version has. Handlers therefore know one type per message.
"""

from functools import cache
from typing import Any

from kio.index import load_request_schema, load_response_schema

from headrace.protocol.entity_reader import Cursor, Reader, entity_reader
from headrace.protocol.entity_writer import Writer, entity_writer
from headrace.protocol.schema import fields_of

# DeleteTopics named its topics in another field until v5.
_DELETE_TOPICS, _TOPIC_STATES_FROM = 20, 6


def decode_request(api_key: int, version: int, newest: int, payload: bytes, offset: int) -> Any:
    """Read the request body at `offset` and return it as the newest version's type."""
    # Bytes behind the request are ignored, as Kafka does: librdkafka 2.16 sends some.
    return _request_reader(api_key, version, newest)(Cursor(payload, offset))


def encode_response(api_key: int, version: int, response: Any) -> bytes:
    """Write `response`, an object of the newest type, as `version` has it."""
    out = bytearray()
    _response_writer(api_key, version)(out, response)
    return bytes(out)


@cache
def _request_reader(api_key: int, version: int, newest: int) -> Reader:
    source = load_request_schema(api_key, version)
    target = load_request_schema(api_key, newest)
    if api_key == _DELETE_TOPICS and version < _TOPIC_STATES_FROM:
        return _delete_topics_reader(source, target)
    return entity_reader(source, target)


@cache
def _response_writer(api_key: int, version: int) -> Writer:
    return entity_writer(load_response_schema(api_key, version))


def _delete_topics_reader(source: Any, target: Any) -> Reader:
    read = entity_reader(source, source)
    state = next(field.item for field in fields_of(target) if field.name == "topics")

    def read_lifted(cursor: Cursor) -> Any:
        request = read(cursor)
        topics = tuple(state(name=name, topic_id=None) for name in request.topic_names)
        return target(topics=topics, timeout=request.timeout)

    return read_lifted
