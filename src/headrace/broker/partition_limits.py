"""How many partitions this broker takes on.

A partition costs nothing until it is used; the limits are there for the day all of them are.
"""

from headrace.broker.errors import InvalidPartitionsError

# Kafka's controller refuses operations of more than 10,000 records, so no topic there is made
# with more partitions than this either.
MAX_PARTITIONS_PER_TOPIC = 10_000
# An open log costs about 10 KB of memory: all of them open stay under 1 GB.
MAX_PARTITIONS = 100_000


def check_partition_count(count: int) -> None:
    """Raise unless a topic may have `count` partitions."""
    if count < 1:
        raise InvalidPartitionsError(
            "Number of partitions was set to an invalid non-positive value."
        )
    if count > MAX_PARTITIONS_PER_TOPIC:
        raise InvalidPartitionsError(
            f"{count} partitions are too many; a topic may have at most {MAX_PARTITIONS_PER_TOPIC}."
        )


def check_partition_total(current: int, additional: int) -> None:
    """Raise unless a broker of `current` partitions may have `additional` more."""
    if current + additional > MAX_PARTITIONS:
        raise InvalidPartitionsError(
            f"{additional} more partition(s) would make {current + additional}; "
            f"this broker holds at most {MAX_PARTITIONS}."
        )
