"""The jars Spark needs beside pyspark's wheel: the pinned list, or one the user names.

`python -m headrace.pipelines.spark.jars` fetches them and prints their directory. Everything is
found offline afterwards, and nothing is resolved when a session starts.
"""

import functools
import os
import sys
from pathlib import Path

from headrace.java.errors import JarError
from headrace.java.jars import Jar, cache_directory, fetch_jars, parse_jar_list, read_jar_list

SPARK_VERSION = "4.2.0"
LIST_VARIABLE = "HEADRACE_SPARK_JARS"


def spark_jar_list(list_file: Path | None = None) -> list[Jar]:
    """Return the jars `list_file` names, else the list HEADRACE_SPARK_JARS names, else our own."""
    named = list_file or os.environ.get(LIST_VARIABLE)
    if not named:
        return read_jar_list("headrace.pipelines.spark", f"spark-{SPARK_VERSION}-jars.txt")
    path = Path(named)
    try:
        jars = parse_jar_list(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise JarError(
            f"cannot read the jar list {path}: {getattr(error, 'strerror', None) or error}; "
            f"--jars and {LIST_VARIABLE} name a file of 'group:artifact:version sha256 bytes' lines"
        ) from error
    if not jars:
        raise JarError(
            f"the jar list {path} names no jar; write 'group:artifact:version sha256 bytes' lines"
        )
    return jars


def expected_jars() -> list[Path]:
    """Where the jars are, or would be; nothing is fetched."""
    return [cache_directory() / "jars" / jar.file_name for jar in spark_jar_list()]


def spark_jars(list_file: Path | None = None) -> list[Path]:
    """Return the jars' paths in class path order, fetching what is missing; looked at once."""
    return _fetched(tuple(spark_jar_list(list_file)), cache_directory() / "jars")


@functools.cache
def _fetched(jars: tuple[Jar, ...], directory: Path) -> list[Path]:
    return fetch_jars(jars, directory=directory)


def main() -> int:
    """Fetch Spark's jars and print the directory they are in."""
    try:
        print(spark_jars()[0].parent)
    except (JarError, OSError) as error:
        print(f"headrace: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
