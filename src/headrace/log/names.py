"""The names Kafka gives to a partition's directory and the files in it."""

import re
from pathlib import Path
from uuid import uuid4

from headrace.model import TopicPartition

LOG_SUFFIX = ".log"
INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
TXN_INDEX_SUFFIX = ".txnindex"
SNAPSHOT_SUFFIX = ".snapshot"
DELETED_SUFFIX = ".deleted"
CLEANED_SUFFIX = ".cleaned"
SWAP_SUFFIX = ".swap"
SEGMENT_SUFFIXES = (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX)

# KRaft's own log: it looks like a partition but belongs to Kafka's controller.
METADATA_TOPIC = "__cluster_metadata"

_PARTITION = re.compile(r"(?P<topic>[a-zA-Z0-9._-]+)-(?P<partition>\d+)")
_SEGMENT_FILE = re.compile(r"(\d{20})(\.[a-z]+)")
_DELETED_DIRECTORY_SUFFIX = "-delete"
_MAX_FILE_NAME = 255


def segment_file(directory: Path, base_offset: int, suffix: str) -> Path:
    return directory / f"{base_offset:020d}{suffix}"


def parse_segment_file(name: str) -> tuple[int, str] | None:
    """(offset, suffix) of `00000000000000000042.log`; None for any other name."""
    match = _SEGMENT_FILE.fullmatch(name)
    return (int(match[1]), match[2]) if match else None


def parse_partition_directory(name: str) -> TopicPartition | None:
    """The partition whose directory has this name; None for any other directory."""
    match = _PARTITION.fullmatch(name)
    if match is None or match["topic"] == METADATA_TOPIC:
        return None
    return TopicPartition(match["topic"], int(match["partition"]))


def deleted_directory_name(name: str) -> str:
    """A name that marks the directory as deleted and cannot collide with a later one."""
    suffix = f".{uuid4().hex}{_DELETED_DIRECTORY_SUFFIX}"
    return name[: _MAX_FILE_NAME - len(suffix)] + suffix


def is_deleted_directory(name: str) -> bool:
    return name.endswith(_DELETED_DIRECTORY_SUFFIX)
