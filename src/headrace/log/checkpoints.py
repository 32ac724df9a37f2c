"""The small text files of a data directory and a partition, in Kafka's formats.

All are replaced in one durable step: a crash leaves the old file or the new one.
"""

import errno
import json
import logging
import os
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from uuid import UUID, uuid4

from headrace.errors import ConfigError
from headrace.log.files import replace_file, sync_directory
from headrace.model import TopicPartition

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_START_OFFSETS = "log-start-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
CLEANER_OFFSETS = "cleaner-offset-checkpoint"
META_PROPERTIES = "meta.properties"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
FAILED_SYNCS = ".headrace_failed_syncs"
PARTITION_METADATA = "partition.metadata"

# Without a descriptor to sync a file by nothing is proven, neither good nor bad.
NO_DESCRIPTOR = (errno.EMFILE, errno.ENFILE)

_log = logging.getLogger(__name__)
_VERSION = "0"
_UNKNOWN_BROKER_EPOCH = -1


def write_offsets(path: Path, offsets: Mapping[TopicPartition, int]) -> None:
    """`0`, the count, then `topic partition offset` a line."""
    lines = [_VERSION, str(len(offsets))]
    lines += [f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items()]
    replace_file(path, ("\n".join(lines) + "\n").encode())


def read_offsets(path: Path) -> tuple[dict[TopicPartition, int], str | None]:
    """(offsets, fault): a file that makes no sense counts as empty and says so."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except FileNotFoundError:
        return {}, None
    except ValueError:
        return {}, "it is not text"
    offsets: dict[TopicPartition, int] = {}
    try:
        if lines[0].strip() != _VERSION:
            return {}, f"its version is {lines[0]!r}, not {_VERSION}"
        for line in lines[2:]:
            topic, partition, offset = line.split()
            offsets[TopicPartition(topic, int(partition))] = int(offset)
        if int(lines[1]) != len(offsets):
            return {}, f"it should have {lines[1]} lines and has {len(offsets)}"
    except (ValueError, IndexError):
        return {}, "a line is not `topic partition offset`"
    return offsets, None


def note_failed_syncs(partition_directories: Sequence[Path]) -> None:
    """Tell the next start that syncs of these partitions failed; appended, in any thread.

    After such a failure the kernel takes the lost pages for clean, and a start would read
    from memory what is not on disk.
    """
    path = partition_directories[0].parent / FAILED_SYNCS
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    try:
        os.write(fd, "".join(f"{one.name}\n" for one in partition_directories).encode())
        os.fsync(fd)
    finally:
        os.close(fd)


def try_note_failed_syncs(partition_directories: Sequence[Path], error: OSError) -> None:
    """As `note_failed_syncs`, where `error` may be a failed sync; never raises."""
    if error.errno in NO_DESCRIPTOR or not partition_directories:
        return
    try:
        note_failed_syncs(partition_directories)
    except OSError as second:
        _log.error(
            "the next start will not know that a sync of %s failed: %s; after it, do not trust "
            "what was written last without a look at the disk",
            partition_directories[0],
            second,
        )


def read_failed_syncs(data_dir: Path) -> set[str]:
    """The names of the partitions whose sync failed in an earlier life."""
    try:
        return set((data_dir / FAILED_SYNCS).read_text("utf-8", "replace").split())
    except FileNotFoundError:
        return set()


def clear_failed_syncs(data_dir: Path) -> None:
    """All of them were read and written anew."""
    (data_dir / FAILED_SYNCS).unlink(missing_ok=True)


def encode_id(value: UUID) -> str:
    """Kafka's text form of an id: 22 characters of URL-safe base64."""
    return urlsafe_b64encode(value.bytes).decode().rstrip("=")


def decode_id(text: str) -> UUID:
    return UUID(bytes=urlsafe_b64decode(text.strip() + "=="))


def write_partition_metadata(directory: Path, topic_id: UUID) -> None:
    text = f"version: 0\ntopic_id: {encode_id(topic_id)}"
    replace_file(directory / PARTITION_METADATA, text.encode(), is_durable=False)


def read_partition_metadata(directory: Path) -> UUID | None:
    """The topic's id; None when the file is missing or makes no sense."""
    try:
        lines = (directory / PARTITION_METADATA).read_text("utf-8").splitlines()
        fields = dict(line.split(": ", 1) for line in lines if line)
        return decode_id(fields["topic_id"])
    except (OSError, ValueError, KeyError):
        return None


def read_properties(path: Path) -> dict[str, str] | None:
    """The key=value lines of a `.properties` file; None when there is no file."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except FileNotFoundError:
        return None
    pairs = [line.split("=", 1) for line in lines if "=" in line and not line.startswith("#")]
    return {key.strip(): value.strip() for key, value in pairs}


def write_properties(path: Path, values: Mapping[str, str]) -> None:
    replace_file(path, "".join(f"{key}={value}\n" for key, value in values.items()).encode())


def check_owner(data_dir: Path, node_id: int, cluster_id: str) -> tuple[str, bool]:
    """(the cluster's id, whether nobody used the directory before); `cluster_id` may be empty."""
    path = data_dir / META_PROPERTIES
    found = read_properties(path)
    if found is None:
        cluster_id = cluster_id or encode_id(uuid4())
        values = {
            "node.id": str(node_id),
            "directory.id": encode_id(uuid4()),
            "version": "1",
            "cluster.id": cluster_id,
        }
        write_properties(path, values)
        return cluster_id, True
    found_cluster = found.get("cluster.id", "")
    if cluster_id and found_cluster != cluster_id:
        wanted = f"{path} belongs to cluster {found_cluster!r}; use that id or another directory"
        raise ConfigError("cluster.id", cluster_id, wanted)
    found_node = found.get("node.id", str(node_id))
    if found_node != str(node_id):
        wanted = f"{path} belongs to node {found_node}; use that id or another directory"
        raise ConfigError("node.id", node_id, wanted)
    return found_cluster, False


def write_clean_shutdown(directory: Path) -> None:
    marker = {"version": 0, "brokerEpoch": _UNKNOWN_BROKER_EPOCH}
    replace_file(directory / CLEAN_SHUTDOWN, json.dumps(marker, separators=(",", ":")).encode())


def take_clean_shutdown(directory: Path) -> bool:
    """Whether the last stop was clean. The marker is gone for good when this returns."""
    try:
        (directory / CLEAN_SHUTDOWN).unlink()
    except FileNotFoundError:
        return False
    sync_directory(directory)
    return True
