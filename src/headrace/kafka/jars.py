"""The pinned jars of the versions of Apache Kafka this package runs.

`python -m headrace.kafka.jars [VERSION]` fetches them and prints their directory.
"""

import re
import sys
from collections.abc import Callable
from importlib import resources
from pathlib import Path

from headrace.errors import EngineError
from headrace.java.jars import Jar, cache_directory, fetch_jars, read_jar_list

KAFKA_VERSION = "4.3.1"
_LIST_NAME = re.compile(r"kafka-(\d+\.\d+\.\d+)-jars\.txt")


def kafka_versions() -> list[str]:
    """Return the versions there is a pinned list of, newest first."""
    names = (each.name for each in resources.files("headrace.kafka").iterdir())
    found = (match[1] for name in names if (match := _LIST_NAME.fullmatch(name)))
    return sorted(found, key=lambda version: [*map(int, version.split("."))], reverse=True)


def find_version(wanted: str) -> str:
    """Return the pinned version that `wanted` means: 4.2 is the 4.2.x there is a list of."""
    versions = kafka_versions()
    for version in versions:
        if wanted in (version, version.rpartition(".")[0]):
            return version
    raise EngineError(
        f"Kafka {wanted} is not one of the versions headrace runs: {', '.join(versions)}"
    )


def kafka_jar_list(version: str = KAFKA_VERSION) -> list[Jar]:
    """Return the pinned jars of one version of Kafka."""
    return read_jar_list("headrace.kafka", f"kafka-{find_version(version)}-jars.txt")


def kafka_jars(
    version: str = KAFKA_VERSION, *, on_bytes: Callable[[int, int], None] | None = None
) -> list[Path]:
    """Return Kafka's jars in class path order, fetching what is missing; looked at once.

    `on_bytes` is told how many bytes have come of how many, if any have to.
    """
    directory = cache_directory() / "jars"
    if (directory, version) not in _looked_at:
        jars = fetch_jars(kafka_jar_list(version), directory=directory, on_bytes=on_bytes)
        _looked_at[directory, version] = jars
    return _looked_at[directory, version]


_looked_at: dict[tuple[Path, str], list[Path]] = {}


def main(version: str = KAFKA_VERSION) -> int:
    """Fetch Kafka's jars and print the directory they are in."""
    try:
        print(kafka_jars(version)[0].parent)
    except (EngineError, OSError) as error:
        print(f"headrace: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
