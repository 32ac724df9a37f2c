"""A topic sink's notes beside the checkpoint: what is written, and where the topics ended then.

All that an app has on a topic before the noted ends belongs to what the note says is written; what
is behind them, nobody has noted. Notes are numbered by themselves, for a batch's number may come
again, and one that is taken is never replaced: of two attempts that are alive, one learns of it.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from headrace.client.librdkafka import Partition
from headrace.pipelines.errors import SinkError
from headrace.pipelines.hadoop_files import HadoopFiles
from headrace.pipelines.spans import NO_BATCH, Written

_NOTE, _ENDING = "note-", ".json"
_DIGITS = 19
# The version before had `batch-N.json` with where the topics ended before batch N, by then
# renamed to `batch-N.done`.
_FORMER, _FORMER_DONE = "batch-", ".done"


class OtherAttemptError(SinkError):
    """Another attempt has noted something meanwhile; the next one reads what."""

    is_retriable = True


@dataclass(frozen=True, slots=True)
class TopicEnd:
    """Which topic it is, and the offset that each partition's next record gets."""

    topic_id: str  # empty where the bus gives none
    offsets: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class TopicSinkNote:
    """What was known at one moment."""

    written: Written = field(default_factory=Written)
    ends: Mapping[str, TopicEnd] = field(default_factory=dict)
    # Topics that were written to, of those that rows name.
    topics: frozenset[str] = frozenset()
    # Whether a batch was being written when this was noted.
    is_begun: bool = False

    def to_json(self) -> str:
        """Render for the file."""
        return json.dumps(
            {
                "written": json.loads(self.written.to_json()),
                "ends": {
                    topic: {"id": end.topic_id, "offsets": end.offsets}
                    for topic, end in self.ends.items()
                },
                "topics": sorted(self.topics),
                "is_begun": self.is_begun,
            }
        )

    @classmethod
    def from_json(cls, text: str) -> "TopicSinkNote":
        """Read what `to_json` rendered."""
        fields = json.loads(text)
        ends = {
            topic: TopicEnd(end["id"], _numbered(end["offsets"]))
            for topic, end in fields["ends"].items()
        }
        written = Written.from_json(json.dumps(fields["written"]))
        return cls(written, ends, frozenset(fields["topics"]), fields["is_begun"])


class TopicNotes:
    """The notes of one sink of one app; the last one counts. Used by one thread."""

    def __init__(self, files: HadoopFiles, folder: str) -> None:
        self._files = files
        self._folder = folder
        self._stale = [entry.name for entry in files.list(folder)]
        notes = [name for name in self._stale if name.startswith(_NOTE) and name.endswith(_ENDING)]
        self._number = max((_number(name, _NOTE) for name in notes), default=-1)
        self.last: TopicSinkNote | None = self._read_former()
        if notes:
            self.last = TopicSinkNote.from_json(files.read(self._path(self._number)))

    def begin(self) -> None:
        """Note that a batch is being written, before its first record is."""
        assert self.last is not None
        if not self.last.is_begun:
            self.put(replace(self.last, is_begun=True))

    def put(self, note: TopicSinkNote) -> None:
        """Write the next note; those before it go."""
        path = self._path(self._number + 1)
        try:
            self._files.write_whole(path, note.to_json())
        except SinkError as error:
            if not self._files.exists(path):
                raise
            raise OtherAttemptError(
                f"{self._files.path(path)} was written by an earlier attempt that was slow to end"
            ) from error
        for name in self._stale:
            self._files.delete(f"{self._folder}/{name}")
        self._number += 1
        self._stale = [path.rpartition("/")[2]]
        self.last = note

    def _path(self, number: int) -> str:
        return f"{self._folder}/{_NOTE}{number:0{_DIGITS}}{_ENDING}"

    def _read_former(self) -> TopicSinkNote | None:
        """The notes of the version before: where the newest batch began is early enough."""
        names = [name for name in self._stale if name.startswith(_FORMER)]
        if not names:
            return None
        done = [_number(name, _FORMER) for name in names if name.endswith(_FORMER_DONE)]
        newest = max(names, key=lambda name: _number(name, _FORMER))
        offsets: dict[str, dict[str, int]] = json.loads(
            self._files.read(f"{self._folder}/{newest}")
        )
        return TopicSinkNote(
            Written.former(max(done, default=NO_BATCH)),
            {topic: TopicEnd("", _numbered(each)) for topic, each in offsets.items()},
            frozenset(offsets),
            is_begun=not newest.endswith(_FORMER_DONE),
        )


def unknown_from(
    noted: Mapping[str, TopicEnd], found: Mapping[str, TopicEnd]
) -> tuple[dict[Partition, int], list[str]]:
    """From where nothing is noted of the topics that are there, and those that are other ones now.

    Offsets of a topic that was deleted and made again mean nothing, nor do those of a log that
    was cut: these are looked at from their start.
    """
    starts, renewed = dict[Partition, int](), list[str]()
    for topic, end in found.items():
        former = noted.get(topic, TopicEnd("", {}))
        is_renewed = bool(former.topic_id and end.topic_id and former.topic_id != end.topic_id)
        if is_renewed:
            renewed.append(topic)
        for number, offset in end.offsets.items():
            start = 0 if is_renewed else former.offsets.get(number, 0)
            starts[topic, number] = start if start <= offset else 0
    return starts, renewed


def topic_ends(
    ends: Mapping[Partition, int], topic_ids: Mapping[str, str], topics: Iterable[str]
) -> dict[str, TopicEnd]:
    """The same by topic."""
    return {
        topic: TopicEnd(
            topic_ids.get(topic, ""),
            {number: offset for (name, number), offset in ends.items() if name == topic},
        )
        for topic in topics
    }


def _numbered(offsets: Mapping[str, Any]) -> dict[int, int]:
    return {int(number): int(offset) for number, offset in offsets.items()}


def _number(name: str, prefix: str) -> int:
    return int(name.removeprefix(prefix).partition(".")[0])
