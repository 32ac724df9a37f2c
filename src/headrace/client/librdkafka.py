"""librdkafka's own clients, for who moves more messages than a Python object each would allow.

Everything else is better served by `Producer`, `Consumer`, `Admin` and `read_ranges`. What is made
here speaks confluent_kafka's language, but for its errors: a call inside `bus_errors()` raises
BusError.
"""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from headrace.client.bus import Bus
from headrace.client.error_table import is_passing
from headrace.client.errors import BusError
from headrace.client.making import make_client

Partition = tuple[str, int]  # topic and partition


def make_consumer(
    bus: Bus, config: Mapping[str, object], fixed: Mapping[str, object] | None = None
) -> Any:
    """A confluent_kafka.Consumer; PropertyError names a property it does not take.

    The user's properties win over `config`, and `fixed` wins over them.
    """
    from confluent_kafka import Consumer

    return make_client(bus, Consumer, config, fixed)


def make_producer(
    bus: Bus, config: Mapping[str, object], fixed: Mapping[str, object] | None = None
) -> Any:
    """A confluent_kafka.Producer; PropertyError names a property it does not take.

    The user's properties win over `config`, and `fixed` wins over them.
    """
    from confluent_kafka import Producer

    return make_client(bus, Producer, config, fixed)


def places(offsets: Mapping[Any, int], note: str = "") -> list[Any]:
    """confluent_kafka's TopicPartitions; with a note, for a commit that carries one."""
    from confluent_kafka import TopicPartition

    notes = (note,) if note else ()
    return [
        TopicPartition(topic, partition, offset, *notes)
        for (topic, partition), offset in offsets.items()
    ]


@contextlib.contextmanager
def bus_errors() -> Iterator[None]:
    """Raise what librdkafka raises as BusError."""
    from confluent_kafka import KafkaException

    try:
        yield
    except KafkaException as error:
        raise error_of(error.args[0]) from error


def error_of(reason: Any) -> BusError:
    """The BusError for a confluent_kafka.KafkaError."""
    return BusError(reason, is_passing=is_passing(reason))
