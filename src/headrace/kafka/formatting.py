"""Format a node's storage, as Kafka wants it before the first start.

Kafka's StorageTool does it, which costs seconds of a JVM. What it writes is the same on every
node of a cluster, but for the node's id, the directory's id and timestamps: so it runs for one
node, and the others get a copy with ids of their own.
"""

import re
import shutil
import subprocess
from pathlib import Path

from headrace.kafka.errors import NodeError
from headrace.kafka.jvm import SMALL_JVM, java_command, java_environment, use_archive, write_log4j
from headrace.kafka.layout import Layout, random_cluster_id

_TIMEOUT_S = 120
_TOOL = "kafka.tools.StorageTool"
_EXCEPTION = re.compile(r'^Exception in thread "main" [\w.$]+: ', re.MULTILINE)
_META, _BOOTSTRAP = "meta.properties", "bootstrap.checkpoint"


def is_formatted(data_directory: Path) -> bool:
    """Whether Kafka would take the directory as it is."""
    return (data_directory / _META).exists()


def format_storage(properties_file: Path, data_directory: Path, layout: Layout) -> None:
    """Format what `properties_file` names, as its own directory sees it.

    A bad setting is found here, in Kafka's words.
    """
    # -g: what an interrupted run has formatted already is left as it is.
    arguments = ("format", "-t", layout.cluster_id, "-g", "-c", properties_file)
    command = java_command(
        _TOOL,
        *arguments,
        flags=[*SMALL_JVM, *use_archive(layout.version)],
        log4j_file=write_log4j(properties_file.parent),
        version=layout.version,
    )
    try:
        answer = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            env=java_environment(),
            cwd=properties_file.parent,
        )
    except subprocess.TimeoutExpired as error:
        raise NodeError(f"formatting {data_directory} took over {_TIMEOUT_S} s") from error
    if answer.returncode:
        raise NodeError(
            f"Kafka's StorageTool could not format {data_directory}: "
            f"{_reason(answer.stderr or answer.stdout)}"
        )


def format_like(formatted: Path, data_directory: Path, node_id: int) -> None:
    """Format a directory as `formatted` is, which belongs to another node of the same cluster."""
    own = {"node.id": str(node_id), "directory.id": random_cluster_id()}
    lines = (formatted / _META).read_text("utf-8").splitlines()
    named = {line.partition("=")[0] for line in lines}
    if not own.keys() <= named:
        raise NodeError(f"{formatted / _META} does not name {' and '.join(own)}")
    data_directory.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(formatted / _BOOTSTRAP, data_directory / _BOOTSTRAP)
    temporary = data_directory / f"{_META}.tmp"
    with temporary.open("w", encoding="utf-8") as file:
        for line in lines:
            name = line.partition("=")[0]
            file.write(f"{name}={own[name]}\n" if name in own else f"{line}\n")
    temporary.rename(data_directory / _META)  # last: it says that the directory is formatted


def _reason(text: str) -> str:
    """What the tool said, without Java's stack and class names."""
    lines = [line for line in text.strip().splitlines() if not line.startswith(("\tat ", "\t..."))]
    return _EXCEPTION.sub("", "\n".join(lines[-5:]))
