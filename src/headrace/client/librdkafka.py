"""librdkafka's own clients, for who moves more messages than a Python object each would allow.

Everything else is better served by `Producer`, `Consumer`, `Admin` and `read_ranges`. What is made
here speaks confluent_kafka's language, but for its errors: a call inside `bus_errors()` raises
BusError.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from typing import Any, TypeVar

from headrace.client.bus import Bus
from headrace.client.error_table import is_passing
from headrace.client.errors import BusError
from headrace.client.making import make_client

Partition = tuple[str, int]  # topic and partition
_Answer = TypeVar("_Answer")


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


def checked(answers: list[Any]) -> list[Any]:
    """TopicPartitions that came back, for `bus_errors` and `Admin.ask` to hear of what is wrong."""
    from confluent_kafka import KafkaException

    for each in answers:
        if each.error is not None:
            raise KafkaException(each.error)
    return answers


@contextlib.contextmanager
def bus_errors(failure: Callable[[Any], BusError] | None = None) -> Iterator[None]:
    """Raise what librdkafka raises as BusError; an Admin's `failure` also explains a silence."""
    from confluent_kafka import KafkaException

    try:
        yield
    except KafkaException as error:
        raise (failure or error_of)(error.args[0]) from error


def error_type() -> type[Exception]:
    """What its calls raise, for who calls too often for `bus_errors`."""
    from confluent_kafka import KafkaException

    return KafkaException


def error_of(reason: Any) -> BusError:
    """The BusError for a confluent_kafka.KafkaError."""
    return BusError(reason, is_passing=is_passing(reason))


def in_thread(call: Callable[[], _Answer]) -> Future[_Answer]:
    """Make a call of librdkafka's that blocks: who waits for the future can be interrupted.

    Whoever waits no longer leaves the thread to itself; it ends with the call, or the process.
    """
    future = Future[_Answer]()

    def run() -> None:
        try:
            answer = call()
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(answer)

    threading.Thread(target=run, name="headrace-question", daemon=True).start()
    return future
