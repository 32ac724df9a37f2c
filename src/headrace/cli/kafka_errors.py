"""What a Kafka error means to whoever typed the command."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

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
# What a broker says while it reads the offsets of a group: librdkafka leaves trying again to us.
_COORDINATOR_STARTS = frozenset({"NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS"})

# A partition that is just coming into being, moving or going.
_LEADERLESS = frozenset(
    {
        "UNKNOWN_TOPIC_OR_PART",
        "LEADER_NOT_AVAILABLE",
        "NOT_LEADER_FOR_PARTITION",
        "_UNKNOWN_PARTITION",  # librdkafka's own, as is the next
        "_UNKNOWN_TOPIC",
    }
)


def sentence_of(error: "KafkaError") -> str:
    """The broker's own words, or ours where it has none that help."""
    if (known := _SENTENCES.get(error.name())) is not None:
        return known
    text = (error.str() or error.name()).strip().removeprefix("Broker: ")
    return f"{text} {error.name()}" if text.endswith(":") else text


def is_no_answer(error: "KafkaError") -> bool:
    """Whether nobody said anything, rather than no."""
    return error.code() in (error._TRANSPORT, error._TIMED_OUT, error._ALL_BROKERS_DOWN)


def is_coordinator_starting(error: "KafkaError") -> bool:
    """Whether the same question will be answered in a moment."""
    return error.name() in _COORDINATOR_STARTS


def is_leaderless(error: "KafkaError") -> bool:
    """Whether it is only that nobody leads the partition now."""
    return error.name() in _LEADERLESS
