"""Messages whose early versions said the same thing in other fields, and how they map."""

from collections.abc import Callable
from typing import Any, NamedTuple

from headrace.protocol.schema import fields_of


class OldRequest(NamedTuple):
    """`lift(request, newest type)` for requests up to version `until`."""

    until: int
    lift: Callable[[Any, Any], Any]


class OldResponse(NamedTuple):
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
OLD_REQUESTS = {
    8: (OldRequest(9, _as_sent),),
    9: (OldRequest(7, lambda request, newest: _OneGroup(request)), OldRequest(9, _as_sent)),
    10: (OldRequest(3, _lift_find_coordinator),),
    13: (OldRequest(2, _lift_leave_group),),
    20: (OldRequest(5, _lift_delete_topics),),
}
OLD_RESPONSES = {
    9: OldResponse(7, _OneGroupsOffsets),
    10: OldResponse(3, lambda response: _Flat(response, response.coordinators[0])),
    13: OldResponse(2, _OneLeaves),
}
