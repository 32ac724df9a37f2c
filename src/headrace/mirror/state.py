"""What a mirror knows of its own past, as records of the state topic.

A checkpoint never claims more than the target has acknowledged; it may claim less.
"""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from headrace.mirror.errors import MirrorError
from headrace.mirror.offset_map import Pair
from headrace.model import known_topic_id

STATE_TOPIC = "headrace-mirror.internal"

COPYING, FOLLOWING, DONE = "copying", "following", "done"


class Verified(NamedTuple):
    """Up to this target offset the target was read again, and its chain was this.

    `is_whole` is False when some of it was removed before it could be read.
    """

    target: int = 0
    crc: int = 0
    is_whole: bool = True


class PartitionCheckpoint(NamedTuple):
    """One partition: the first `target` visible records lie before `source`, and have arrived.

    The ids are those of the topics it speaks of: it says nothing of others with their names. They
    are empty where they are not known, also in what an earlier version has written.
    """

    source: int
    target: int
    crc: int  # the chain over all of them
    is_clean: bool  # nothing was under way when this was written, and nothing came after it
    verified: Verified
    pairs: tuple[Pair, ...]
    source_topic_id: str = ""
    target_topic_id: str = ""


class TopicNote(NamedTuple):
    """One topic: whose copy it is and how far it has come. Its key has the source's cluster."""

    name: str  # the mirror's
    source_topic_id: str
    target_topic_id: str
    chain: tuple[str, ...]  # ids of the clusters it came through; the source's is the last
    phase: str
    presets: dict[str, str]  # what the target topic had before; wins over the source's configs
    target_cluster_id: str = ""


class CheckpointKey(NamedTuple):
    source_id: str
    topic: str
    partition: int


class NoteKey(NamedTuple):
    source_id: str
    topic: str


Key = CheckpointKey | NoteKey
Entry = PartitionCheckpoint | TopicNote


class StateRow(NamedTuple):
    """One record of the state topic; of two for the same key the higher revision counts."""

    revision: int
    entry: Entry


def encode_key(key: Key) -> bytes:
    kind = "checkpoint" if isinstance(key, CheckpointKey) else "topic"
    return json.dumps([kind, *key]).encode()


def encode_row(row: StateRow) -> bytes:
    return json.dumps({"revision": row.revision, **_fields(row.entry)}).encode()


def decode(key: bytes, value: bytes) -> tuple[Key, StateRow]:
    """Read one record; raises MirrorError when it is none of ours."""
    try:
        kind, *words = json.loads(key)
        fields: dict[str, Any] = json.loads(value)
        revision = fields.pop("revision")
        if kind == "checkpoint":
            return CheckpointKey(*words), StateRow(revision, _checkpoint(fields))
        if kind == "topic":
            return NoteKey(*words), StateRow(revision, _note(fields))
    except (ValueError, TypeError, KeyError) as error:
        raise MirrorError(_foreign(key)) from error
    raise MirrorError(_foreign(key))


def _fields(entry: Entry) -> Mapping[str, object]:
    return entry._asdict()


def _checkpoint(fields: dict[str, Any]) -> PartitionCheckpoint:
    fields["verified"] = Verified(*fields["verified"])
    fields["pairs"] = tuple(Pair(*each) for each in fields["pairs"])
    return PartitionCheckpoint(**fields)


def _note(fields: dict[str, Any]) -> TopicNote:
    fields["chain"] = tuple(fields["chain"])
    for name in ("source_topic_id", "target_topic_id"):
        fields[name] = known_topic_id(fields.get(name))
    return TopicNote(**fields)


def _foreign(key: bytes) -> str:
    return (
        f"a record of {STATE_TOPIC} with the key {key[:80]!r} was not written by this version of "
        "headrace mirror; use the version that wrote it, or delete that topic and the copies"
    )
