"""Run Kafka's own command line tools and keep what they print apart."""

import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from headrace.errors import EngineError
from headrace.kafka.jars import KAFKA_VERSION
from headrace.kafka.jvm import SMALL_JVM, java_command, use_archive, write_log4j

DUMP_LOG_SEGMENTS = "org.apache.kafka.tools.DumpLogSegments"
CONSOLE_PRODUCER = "org.apache.kafka.tools.ConsoleProducer"
CONSOLE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
TOPIC_COMMAND = "org.apache.kafka.tools.TopicCommand"


class Completed(NamedTuple):
    """How a tool ended and what it printed."""

    return_code: int
    stdout: str
    stderr: str


def run_tool(
    class_name: str,
    *arguments: str | Path,
    stdin: str = "",
    timeout_s: float = 100,
    version: str = KAFKA_VERSION,
) -> Completed:
    """Run one tool to its end. Its log lines are on stderr, so stdout is only its answer."""
    with tempfile.TemporaryDirectory(prefix="headrace-tool-") as directory:
        command = java_command(
            class_name,
            *arguments,
            flags=[*SMALL_JVM, *use_archive(version)],
            log4j_file=write_log4j(Path(directory)),
            version=version,
        )
        try:
            answer = subprocess.run(
                command, input=stdin, capture_output=True, text=True, timeout=timeout_s
            )
        except subprocess.TimeoutExpired as error:
            raise EngineError(f"{class_name} took over {timeout_s} s") from error
    return Completed(answer.returncode, answer.stdout, answer.stderr)


def dump_log_segments(files: Iterable[Path], *flags: str, timeout_s: float = 100) -> Completed:
    """Run DumpLogSegments on `files`, such as `--deep-iteration --print-data-log`."""
    names = ",".join(map(str, files))
    return run_tool(DUMP_LOG_SEGMENTS, *flags, "--files", names, timeout_s=timeout_s)
