"""Every cold message through kio's schemas, always seen at its newest version.

Requests are *lifted*: read as sent, returned as the newest version's type.
Responses are *lowered*: built by handlers as the newest type, written with the
fields the asked-for version has. Handlers therefore know one type per message, and
what early versions said in other fields is mapped here.
"""

import dataclasses
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from kio.index import load_request_schema, load_response_schema

from headrace.protocol.entity_reader import Cursor, Reader, entity_reader
from headrace.protocol.entity_writer import Writer, entity_writer
from headrace.protocol.schema import fields_of


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
    for old_form in _OLD_REQUESTS.get(api_key, ()):
        if version <= old_form.until:
            return _lifting(entity_reader(source, source), old_form.lift, target)
    return entity_reader(source, target)


def _lifting(read: Reader, lift: Callable[[Any, Any], Any], target: Any) -> Reader:
    return lambda cursor: lift(read(cursor), target)


@cache
def _response_writer(api_key: int, version: int) -> Writer:
    write = entity_writer(load_response_schema(api_key, version))
    old_form = _OLD_RESPONSES.get(api_key)
    if old_form is not None and version <= old_form.until:
        return lambda out, response: write(out, old_form.lower(response))
    return write


def is_heavier(message: Any, limit: int) -> bool:
    """Whether a message holds more than `limit` array elements, at any depth.

    They are what takes time to encode; they are counted no further than needed.
    """
    return _count(message, limit) > limit


def _count(message: Any, limit: int) -> int:
    total = 0
    kind: Any = type(message)
    for name in _field_names(kind):
        elements = getattr(message, name)
        if type(elements) is not tuple or not elements:
            continue
        total += len(elements)
        kind = type(elements[0])
        if not _field_names(kind):
            continue  # numbers or texts
        for element in elements:
            if total > limit:
                return total
            total += _count(element, limit - total)
    return total


@cache
def _field_names(kind: Any) -> tuple[str, ...]:
    """Of kio's message types, and of the named tuples that stand for several versions of one."""
    if dataclasses.is_dataclass(kind):
        return tuple(field.name for field in dataclasses.fields(kind))
    return tuple(getattr(kind, "_fields", ()))


class _OldRequest(NamedTuple):
    """`lift(request, newest type)` for requests up to version `until`."""

    until: int
    lift: Callable[[Any, Any], Any]


class _OldResponse(NamedTuple):
    """`lower(response)` gives an object with the fields of versions up to `until`."""

    until: int
    lower: Callable[[Any], Any]


class _Flat:
    """A response's fields and those of its only element, side by side."""

    def __init__(self, response: Any, element: Any) -> None:
        for source in (response, element):
            for field in fields_of(type(source)):
                setattr(self, field.name, getattr(source, field.name))


def _lift_delete_topics(request: Any, newest: Any) -> Any:
    state = next(field.item for field in fields_of(newest) if field.name == "topics")
    topics = tuple(state(name=name, topic_id=None) for name in request.topic_names)
    return newest(topics=topics, timeout=request.timeout)


def _lift_find_coordinator(request: Any, newest: Any) -> Any:
    key_type = getattr(request, "key_type", 0)
    return newest(key_type=key_type, coordinator_keys=(request.key,))


def _as_sent(request: Any, newest: Any) -> Any:
    return request


class _OneGroup:
    """The only group of an OffsetFetch that names its topics, in the fields of later versions."""

    def __init__(self, request: Any) -> None:
        self.groups = (request,)
        self.require_stable = getattr(request, "require_stable", False)


class _OneGroupsOffsets:
    """The answer to such a request."""

    def __init__(self, response: Any) -> None:
        (group,) = response.groups
        self.throttle_time = response.throttle_time
        self.error_code, self.topics = group.error_code, group.topics


def _lift_leave_group(request: Any, newest: Any) -> Any:
    identity = next(field.item for field in fields_of(newest) if field.name == "members")
    return newest(group_id=request.group_id, members=(identity(member_id=request.member_id),))


class _OneLeaves:
    """The answer to the only member that left."""

    def __init__(self, response: Any) -> None:
        self.throttle_time = response.throttle_time
        self.error_code = response.error_code or (
            response.members[0].error_code if response.members else response.error_code
        )


# OffsetCommit (8) and OffsetFetch (9) named their topics until v9, and had fields since lost: their
# handlers see them as they were sent. OffsetFetch was for one group until v7 (KIP-709),
# FindCoordinator (10) for one key until v3 (KIP-699), LeaveGroup (13) for one member until v2
# (KIP-345). DeleteTopics (20) had plain names until v5.
_OLD_REQUESTS = {
    8: (_OldRequest(9, _as_sent),),
    9: (_OldRequest(7, lambda request, newest: _OneGroup(request)), _OldRequest(9, _as_sent)),
    10: (_OldRequest(3, _lift_find_coordinator),),
    13: (_OldRequest(2, _lift_leave_group),),
    20: (_OldRequest(5, _lift_delete_topics),),
}
_OLD_RESPONSES = {
    9: _OldResponse(7, _OneGroupsOffsets),
    10: _OldResponse(3, lambda response: _Flat(response, response.coordinators[0])),
    13: _OldResponse(2, _OneLeaves),
}
