"""How Kafka's classes are run: Java, class path, flags, and the class-data archive.

The archive halves the CPU time of every short-lived JVM. It is bound to one Java
build and one class path, so both are part of its name; the first node that stops
cleanly without finding one leaves one behind.
"""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from headrace.java.installation import find_java
from headrace.kafka.jars import KAFKA_VERSION, kafka_jars

# Quick to start and small: for tests and tools. The second compiler never pays back there.
SMALL_JVM = ("-Xms64m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
# What Kafka's own start script gives a broker: 1 GB, and G1 as the script sets it up.
BENCH_JVM = (
    "-Xms1g",
    "-Xmx1g",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
)

ARCHIVE_SUFFIX = ".jsa"
# A node whose peers are dead warns every second: its log is bounded.
NODE_LOG_BYTES, NODE_LOG_BACKUPS = 10 * 1024 * 1024, 3
# Java takes the names of files for what the locale says; a plain C one would have none but ASCII.
_LOCALE = {"LC_ALL": "C.UTF-8"}

_CONSOLE = """\
appender.out.type = Console
appender.out.target = SYSTEM_ERR
"""
# Relative to where the node runs: in a pattern a path's own % and $ would mean something.
_ROLLING_FILE = f"""\
appender.out.type = RollingFile
appender.out.fileName = {{name}}
appender.out.filePattern = {{name}}.%i
appender.out.policies.type = Policies
appender.out.policies.size.type = SizeBasedTriggeringPolicy
appender.out.policies.size.size = {NODE_LOG_BYTES}
appender.out.strategy.type = DefaultRolloverStrategy
appender.out.strategy.max = {NODE_LOG_BACKUPS}
"""
_LOG4J = """\
status = error
appender.out.name = OUT
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{ISO8601} %p %c{1}: %m%n
rootLogger.level = warn
rootLogger.appenderRef.out.ref = OUT
logger.started.name = kafka.server.KafkaRaftServer
logger.started.level = info
"""


def archive_path(version: str = KAFKA_VERSION) -> Path:
    """Where the class-data archive for this Java and these jars is, or would be."""
    jars = kafka_jars(version)
    identity = "\n".join([find_java().build, *map(str, jars)])
    digest = hashlib.sha256(identity.encode()).hexdigest()[:16]
    return jars[0].parent / f"kafka-{digest}{ARCHIVE_SUFFIX}"


def java_command(
    class_name: str,
    *arguments: str | Path,
    flags: Sequence[str] = SMALL_JVM,
    log4j_file: Path | None = None,
    version: str = KAFKA_VERSION,
) -> list[str]:
    """Build the command line that runs `class_name` of Kafka's."""
    class_path = ":".join(map(str, kafka_jars(version)))
    command = [str(find_java().path), *flags]
    if log4j_file:
        # As a URI: of a path it would take a comma for the end of one of several.
        command.append(f"-Dlog4j2.configurationFile={log4j_file.absolute().as_uri()}")
    return [*command, "-cp", class_path, class_name, *map(str, arguments)]


def java_environment() -> dict[str, str]:
    """Our environment, with a locale in which every UTF-8 path can be opened."""
    return {**os.environ, **_LOCALE}


def use_archive(version: str = KAFKA_VERSION) -> list[str]:
    """Return the flags that use the archive, none while there is no archive."""
    path = archive_path(version)
    # Its warnings about an archive that does not fit go to stdout, where tools write answers.
    return [f"-XX:SharedArchiveFile={path}", "-Xshare:auto", "-Xlog:disable"] * path.exists()


def write_log4j(directory: Path, *, log_name: str | None = None) -> Path:
    """Write the quiet logging configuration: warnings, and the line that says "started".

    A tool writes them to stderr, a node into the file of that name where it runs.
    """
    path = directory / "log4j2.properties"
    appender = _ROLLING_FILE.format(name=log_name) if log_name else _CONSOLE
    path.write_text(_LOG4J + appender, "utf-8")
    return path
