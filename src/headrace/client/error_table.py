"""What an error of Kafka's or librdkafka's means to whoever asked: one table for everybody.

Nothing else in headrace lists error names to decide whether to ask again. A name that is not here
is the caller's affair: asked again, the same would be said.
"""

from enum import Enum
from typing import Protocol


class NamedError(Protocol):
    """What is used of a confluent_kafka.KafkaError."""

    def name(self) -> str: ...

    def str(self) -> str: ...

    def fatal(self) -> bool: ...


class ErrorKind(Enum):
    """What the same question would meet in a moment."""

    SILENT = "nobody has answered"
    MOVING = "a partition is between two leaders, or a node is not ready"
    LOADING = "a coordinator is starting or moving"
    UNKNOWN = "no such topic, or not known to this node yet"
    REFUSED = "asked again, the same is said"


_NAMES = {
    ErrorKind.SILENT: (
        "_TRANSPORT",
        "_TIMED_OUT",
        "_ALL_BROKERS_DOWN",
        "_MSG_TIMED_OUT",
        "_RESOLVE",
    ),
    ErrorKind.MOVING: (
        "_WAIT_CACHE",
        "BROKER_NOT_AVAILABLE",
        "FENCED_LEADER_EPOCH",
        "KAFKA_STORAGE_ERROR",
        "LEADER_NOT_AVAILABLE",
        "NETWORK_EXCEPTION",
        "NOT_CONTROLLER",
        "NOT_ENOUGH_REPLICAS",
        "NOT_LEADER_FOR_PARTITION",
        "OFFSET_NOT_AVAILABLE",
        "REPLICA_NOT_AVAILABLE",
        "REQUEST_TIMED_OUT",
        "UNKNOWN_LEADER_EPOCH",
    ),
    ErrorKind.LOADING: (
        "_WAIT_COORD",
        "COORDINATOR_LOAD_IN_PROGRESS",
        "COORDINATOR_NOT_AVAILABLE",
        "NOT_COORDINATOR",
    ),
    ErrorKind.UNKNOWN: (
        "_NOENT",  # what librdkafka says of a leader where none of the partitions asked for has one
        "_UNKNOWN_PARTITION",
        "_UNKNOWN_TOPIC",
        "UNKNOWN_TOPIC_ID",
        "UNKNOWN_TOPIC_OR_PART",
    ),
}
_KINDS = {name: kind for kind, names in _NAMES.items() for name in names}
_PASSING = frozenset({ErrorKind.SILENT, ErrorKind.MOVING, ErrorKind.LOADING})

# Errors whose own text is empty or does not say what to do.
_SENTENCES = {
    "UNKNOWN_TOPIC_OR_PART": "there is no such topic; 'headrace topics list' shows those there are",
    "GROUP_ID_NOT_FOUND": "there is no such group; 'headrace groups list' shows those there are",
    "NON_EMPTY_GROUP": "the group has members; stop them first",
    "NOT_COORDINATOR": "the group's coordinator is moving; try again in a moment",
    "COORDINATOR_NOT_AVAILABLE": "the broker has no coordinator for groups; try again in a moment",
    "CLUSTER_AUTHORIZATION_FAILED": "not allowed on the cluster; ask for the ACL it takes",
    "TOPIC_AUTHORIZATION_FAILED": "not allowed on the topic; ask for the ACL it takes",
    "GROUP_AUTHORIZATION_FAILED": "not allowed on the group; ask for the ACL it takes",
}
# librdkafka refuses by its own limit before a broker does.
_TOO_LARGE = frozenset({"MSG_SIZE_TOO_LARGE", "_MSG_SIZE_TOO_LARGE", "RECORD_LIST_TOO_LARGE"})


def kind_of(error: NamedError) -> ErrorKind:
    """What kind of error it is."""
    return _KINDS.get(error.name(), ErrorKind.REFUSED)


def is_passing(error: NamedError) -> bool:
    """Whether the same question may be answered in a moment."""
    return kind_of(error) in _PASSING


def is_silence(error: NamedError) -> bool:
    """Whether nobody said anything, rather than no."""
    return kind_of(error) is ErrorKind.SILENT


def is_unknown(error: NamedError) -> bool:
    """Whether there is no such topic or partition, or this node has not heard of it yet."""
    return kind_of(error) is ErrorKind.UNKNOWN


def is_loading(error: NamedError) -> bool:
    """Whether a group's coordinator is starting or moving."""
    return kind_of(error) is ErrorKind.LOADING


def is_leaderless(error: NamedError) -> bool:
    """Whether nobody leads the partition now: it is moving, just coming into being, or going."""
    return kind_of(error) in (ErrorKind.MOVING, ErrorKind.UNKNOWN)


def is_end_of_partition(error: NamedError) -> bool:
    """Whether it is no error but says that the partition has no more for now."""
    return error.name() == "_PARTITION_EOF"


def is_offset_gone(error: NamedError) -> bool:
    """Whether the log does not have the offset: retention took it, or it is another log."""
    return error.name() in ("_AUTO_OFFSET_RESET", "OFFSET_OUT_OF_RANGE")


def is_too_large(error: NamedError) -> bool:
    """Whether a message, or a batch, is larger than somebody takes."""
    return error.name() in _TOO_LARGE


def is_fatal(error: NamedError | None) -> bool:
    """Whether an idempotent producer has lost its thread, and rightly refuses to go on."""
    return error is not None and (error.name() == "_FATAL" or error.fatal())


def sentence_of(error: NamedError) -> str:
    """The broker's own words, or ours where it has none that help."""
    if (known := _SENTENCES.get(error.name())) is not None:
        return known
    text = (error.str() or error.name()).strip().removeprefix("Broker: ")
    return f"{text} {error.name()}" if text.endswith(":") else text
