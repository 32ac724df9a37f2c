"""Make a librdkafka client for a bus; what it does not take is told with where it was written."""

import os
import re
import weakref
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

from headrace.client.bus import Bus
from headrace.client.errors import PropertyError
from headrace.properties import Assignment

# librdkafka names the property in its sentence and nowhere else.
_NAMED = re.compile(r'property:? "([^"]+)"')
# It knows some by two names, and tells of the one that was not written.
_OTHER_NAMES = {
    "request.required.acks": "acks",
    "message.send.max.retries": "retries",
    "queue.buffering.max.ms": "linger.ms",
    "compression.codec": "compression.type",
    "message.timeout.ms": "delivery.timeout.ms",
    "metadata.broker.list": "bootstrap.servers",
    "sasl.mechanisms": "sasl.mechanism",
}
_Client = TypeVar("_Client")


class Forkable(Protocol):
    """A client of ours. By a fork its child gets a copy without the threads that do the work."""

    def end_in_child(self) -> None:
        """Be closed without a word to librdkafka, which would wait for those threads for ever."""


_open = weakref.WeakSet[Forkable]()


def ends_in_child(client: Forkable) -> None:
    """Have it closed in a process that is forked from this one."""
    _open.add(client)


def _end_in_child() -> None:
    for client in list(_open):
        client.end_in_child()


os.register_at_fork(after_in_child=_end_in_child)


def make_client(
    bus: Bus,
    make: Callable[[Any], _Client],
    more: Mapping[str, object] | None = None,
    fixed: Mapping[str, object] | None = None,
) -> _Client:
    """Call confluent_kafka's `make` with the bus's configuration and `more`.

    The user's properties win over `more`, and `fixed` wins over them: what the caller relies on.
    """
    from confluent_kafka import KafkaException

    config = bus.client_config(more)
    for name, value in (fixed or {}).items():
        config.pop(name, None)
        config[name] = value  # the last: of a property with two names librdkafka takes that
    try:
        return make(config)
    except KafkaException as error:
        message = str(error.args[0].str()).strip()
        match = _NAMED.search(message)
        name = match[1] if match else ""
        if name not in config:
            name = _OTHER_NAMES.get(name, name)
        source = bus.sources.get(name, name or "client properties")
        if message.startswith("No such"):
            message = f"no client property is called {name}; librdkafka's names are used"
        value = str(config.get(name, ""))
        raise PropertyError(Assignment(name, value, source), message) from error
