"""The class-data archive that lets Spark's Java process start in about half the CPU time.

It is bound to one Java build and one class path, so both are part of its name. A Java process
that cannot use one starts without it. `build_archive` runs a session in a process of its own that
does a little of all a pipeline does: what it loads is what the archive holds.
"""

import hashlib
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from headrace.java.installation import find_java
from headrace.java.jars import cache_directory
from headrace.pipelines.errors import SparkError

# Under a minute on two free cores; a machine that needs ten times that is stuck.
BUILD_TIMEOUT_S = 600


def archive_path(jars: Sequence[Path], pyspark_version: str) -> Path:
    """Where the archive for this Java, this pyspark and these jars is, or would be."""
    identity = "\n".join([find_java().build, pyspark_version, sys.prefix, *map(str, jars)])
    digest = hashlib.sha256(identity.encode()).hexdigest()[:16]
    return cache_directory() / "jars" / f"spark-{digest}.jsa"


def use_archive(path: Path) -> list[str]:
    """Return the flags that use the archive at `path`, none while there is none."""
    return [f"-XX:SharedArchiveFile={path}", "-Xshare:auto", "-Xlog:disable"] * path.exists()


def build_archive(path: Path, bootstrap: str, topic: str, log_file: Path) -> None:
    """Make the archive at `path` by a run that reads and writes `topic`."""
    temporary = path.with_suffix(f".{os.getpid()}")
    command = [sys.executable, "-m", "headrace.pipelines.spark.archive_workload"]
    try:
        answer = subprocess.run(
            [*command, bootstrap, topic, temporary, log_file],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=BUILD_TIMEOUT_S,
        )
        if answer.returncode or not temporary.exists():
            said = answer.stderr.strip().splitlines()
            raise SparkError(
                f"the class archive could not be built: {said[-1] if said else 'it is missing'}; "
                "Spark starts without it too, only slower (--no-archive)",
                log_file,
            )
        temporary.rename(path)
    except subprocess.TimeoutExpired as error:
        raise SparkError(
            f"the class archive was not built within {BUILD_TIMEOUT_S} s; "
            "Spark starts without it too, only slower (--no-archive)",
            log_file,
        ) from error
    finally:
        temporary.unlink(missing_ok=True)
