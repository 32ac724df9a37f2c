"""The settings of a session, each with its reason. What the user sets wins.

Five settings are lists, and there the user's value is added to ours: taking it in place of ours
would take the Kafka connector away from whoever adds a jar of their own.
"""

import os
import re
import socket
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from headrace.pipelines.spark.class_archive import archive_path, use_archive
from headrace.pipelines.spark.jars import spark_jars
from headrace.pipelines.spark.output import log_flags
from headrace.pipelines.spark.worker_code import worker_zip

# A lost task (a broker that restarts, a worker slow to connect) is tried again; Spark's own
# `local[2]` never does.
TASK_ATTEMPTS = 4
# Two at least: one task waits for a broker while the other computes.
LOCAL_CORES = max(2, len(os.sched_getaffinity(0)))
LOCAL_MASTER = f"local[{LOCAL_CORES},{TASK_ATTEMPTS}]"
# On a cluster the cores are not known beforehand. Spark's own 200 are dear in small batches.
CLUSTER_SHUFFLE_PARTITIONS = 32
# A quarter of the machine: the broker and the databases may share it. Spark itself asks for half
# a gigabyte at least; runs of millions of rows kept within two, so four are ample.
MEMORY_SHARE = 0.25
MEMORY_LEAST_MIB, MEMORY_MOST_MIB = 1024, 4096
QUICK_MEMORY = "1g"
# Open files a task may write at once before it has to sort: a batch of late records spans a few
# hours of a lake, and each open Parquet file holds a buffer.
OPEN_OUTPUT_FILES = 16
# Larger than Spark's 10,000: fewer round trips to Python. The bytes are limited too, for rows of
# a megabyte.
ARROW_BATCH_ROWS = 50_000
ARROW_BATCH_BYTES = 64 * 1024 * 1024

# The second compiler never pays back in a session of seconds.
_QUICK_FLAGS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")

LOG_FILE = "spark.headrace.logFile"  # our own: whoever has only the session finds its log here
JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_SEPARATORS = {
    JAVA_OPTIONS: " ",
    "spark.driver.extraClassPath": ":",
    "spark.jars": ",",
    "spark.submit.pyFiles": ",",
    "spark.sql.extensions": ",",
}
_LOCAL = re.compile(r"local(?:\[(\d+|\*)\])?")
_CORES = re.compile(r"local\[(\d+)")
_COLLECTOR = re.compile(r"-XX:\+Use\w*GC\b")


def full_master(master: str) -> str:
    """Give a local master that does not say how often a task is tried our number."""
    match = _LOCAL.fullmatch(master)
    return f"local[{match[1] or 1},{TASK_ATTEMPTS}]" if match else master


def session_settings(
    name: str, master: str, conf: Mapping[str, str], *, log_file: Path, is_quick: bool = False
) -> dict[str, str]:
    """All settings of a session; those in `conf` win, or are added where they are lists."""
    master = full_master(conf.get("spark.master", master))
    settings = {
        "spark.master": master,
        "spark.app.name": name,
        LOG_FILE: str(log_file),
        "spark.driver.memory": QUICK_MEMORY if is_quick else f"{driver_memory_mib()}m",
        JAVA_OPTIONS: _java_options(conf, log_file, is_quick=is_quick),
        "spark.driver.extraClassPath": ":".join(map(str, spark_jars())),
        # Spark would make the directory wherever the command was typed.
        "spark.sql.warehouse.dir": str(log_file.parent / "spark-warehouse"),
        # Times in a lake and in SQL mean the same wherever a pipeline runs.
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        # Its 50 tasks for each look at a small table take longer than the batch.
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.sql.shuffle.partitions": str(_shuffle_partitions(master)),
        "spark.sql.maxConcurrentOutputFileWriters": str(OPEN_OUTPUT_FILES),
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(ARROW_BATCH_ROWS),
        "spark.sql.execution.arrow.maxBytesPerBatch": str(ARROW_BATCH_BYTES),
        # A page on a port that somebody else may have, and a bar across our own view.
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    if not master.startswith("local"):
        settings |= _cluster_settings(master)
        if is_quick:
            settings["spark.executor.extraJavaOptions"] = " ".join(_QUICK_FLAGS)
    for key, value in conf.items():
        if key == "spark.master":
            continue
        ours = settings.get(key) if key in _SEPARATORS else None
        settings[key] = f"{ours}{_SEPARATORS[key]}{value}" if ours else value
    return settings


def driver_memory_mib() -> int:
    """A share of what this machine, or the container we are in, has."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text("ascii").strip()
    except OSError:
        limit = "max"
    if limit.isdigit():
        total = min(total, int(limit))
    share_mib = int(total * MEMORY_SHARE) // (1024 * 1024)
    return min(max(share_mib, MEMORY_LEAST_MIB), MEMORY_MOST_MIB)


def address_towards(master: str) -> str | None:
    """This machine's address as `spark://HOST:PORT` sees it; None where that cannot be known."""
    target = urlsplit(master)
    if target.scheme != "spark" or not target.hostname:
        return None
    # Nothing is sent: connecting a datagram socket only asks which way it would go.
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((target.hostname, target.port or 7077))
        except OSError:
            return None
        return str(probe.getsockname()[0])


def _java_options(conf: Mapping[str, str], log_file: Path, *, is_quick: bool) -> str:
    import pyspark

    theirs = conf.get(JAVA_OPTIONS, "")
    flags = log_flags(log_file)
    if "-XX:ArchiveClassesAtExit" not in theirs:  # Java makes an archive or uses one
        flags += use_archive(archive_path(spark_jars(), pyspark.__version__))
    if is_quick:
        has_collector = _COLLECTOR.search(theirs)  # Java refuses to start with two
        flags += _QUICK_FLAGS[:1] if has_collector else _QUICK_FLAGS
    return " ".join(f'"{flag}"' if " " in flag else flag for flag in flags)


def _shuffle_partitions(master: str) -> int:
    if not master.startswith("local"):
        return CLUSTER_SHUFFLE_PARTITIONS
    cores = _CORES.match(master)
    return int(cores[1]) if cores else LOCAL_CORES


def _cluster_settings(master: str) -> dict[str, str]:
    """What executors on other machines need: our jars, our code, and the way back to us."""
    settings = {
        "spark.jars": ",".join(map(str, spark_jars())),
        "spark.submit.pyFiles": str(worker_zip()),
        "spark.executorEnv.PYTHONSAFEPATH": "1",
    }
    if address := address_towards(master):
        settings["spark.driver.host"] = address
    return settings
