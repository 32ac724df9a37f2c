"""The pinned jars of the Apache Kafka this package runs.

`python -m headrace.kafka.jars` fetches them and prints their directory.
"""

import functools
import sys
from pathlib import Path

from headrace.errors import JarError
from headrace.java.jars import Jar, cache_directory, fetch_jars, read_jar_list

KAFKA_VERSION = "4.3.1"


def kafka_jar_list() -> list[Jar]:
    """Return the pinned jars of the Kafka version this package runs."""
    return read_jar_list("headrace.kafka", f"kafka-{KAFKA_VERSION}-jars.txt")


def kafka_jars() -> list[Path]:
    """Return Kafka's jars in class path order, fetching what is missing; looked at once."""
    return _kafka_jars_in(cache_directory() / "jars")


@functools.cache
def _kafka_jars_in(directory: Path) -> list[Path]:
    return fetch_jars(kafka_jar_list(), directory=directory)


def main() -> int:
    """Fetch Kafka's jars and print the directory they are in."""
    try:
        print(kafka_jars()[0].parent)
    except (JarError, OSError) as error:
        print(f"headrace: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
