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


# DeleteTopics (20) had plain names until v5; FindCoordinator (10) one key until v3 (KIP-699).
OLD_REQUESTS = {
    10: OldRequest(3, _lift_find_coordinator),
    20: OldRequest(5, _lift_delete_topics),
}
OLD_RESPONSES = {
    10: OldResponse(3, lambda response: _Flat(response, response.coordinators[0])),
}
