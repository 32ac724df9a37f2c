"""Find a Java that is new enough for Kafka.

`python -m headrace.java.installation` prints its path, or says what to install and exits 1.
"""

import functools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from headrace.java.errors import JavaNotFoundError

MINIMUM_VERSION = 17  # Kafka 4 brokers and tools
_JVM_DIRECTORY = Path("/usr/lib/jvm")
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')
_PROBE_TIMEOUT_S = 30


class Java(NamedTuple):
    """One Java: its executable, its feature version, and the line naming its exact build."""

    path: Path
    version: int
    build: str


def parse_version(text: str) -> int | None:
    """Return the feature version in what `java -version` prints: 8 for "1.8.0_292", 17, 25."""
    match = _VERSION.search(text)
    return int(match[1]) if match else None


@functools.cache
def find_java() -> Java:
    """Return the first Java of at least `MINIMUM_VERSION`; asked once a process."""
    too_old = []
    for path in _candidates():
        java = _probe(path)
        if java is None:
            continue
        if java.version >= MINIMUM_VERSION:
            return java
        too_old.append(f"Java {java.version} at {java.path}")
    raise JavaNotFoundError(MINIMUM_VERSION, too_old)


def _candidates() -> Iterator[Path]:
    """JAVA_HOME first, then PATH, then what the distribution installed."""
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home) / "bin" / "java"
    if on_path := shutil.which("java"):
        yield Path(on_path)
    yield from sorted(_JVM_DIRECTORY.glob("*/bin/java"))


def _probe(path: Path) -> Java | None:
    try:
        answer = subprocess.run(
            [path, "-version"], capture_output=True, text=True, timeout=_PROBE_TIMEOUT_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    version = parse_version(answer.stderr)
    return None if version is None else Java(path, version, answer.stderr.strip())


def main() -> int:
    """Print the path of a usable Java."""
    try:
        print(find_java().path)
    except JavaNotFoundError as error:
        print(f"headrace: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
