"""Commit notes: what makes a batch visible in a lake of plain directories, wholly and once.

A note is written whole before the first file is moved, and marked done after the last. All that
it asks for can be done twice, so whoever finds one that is not done finishes it. Notes do not pile
up: of each app the last done batch is kept, and what is not done.
"""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass

from headrace.errors import SinkError
from headrace.pipelines.sinks.lake.files import HadoopFiles

# Hidden from Spark, DuckDB and pyarrow by its first letter.
HOME = "_headrace"
COMMITS = f"{HOME}/commits"
STAGING = f"{HOME}/staging"

_BATCH, _COMPACTION = "batch-", "compaction-"
_PENDING, _DONE = ".json", ".done"
_BATCH_DIGITS = 19  # of the largest batch id, so that names sort as numbers do
# Another app's note or staging directory is left alone until it is this old: no batch takes as
# long, so its writer is dead.
ABANDONED_AFTER_MS = 24 * 3600 * 1000


@dataclass(frozen=True, slots=True)
class Note:
    """Files to move into place, then files to remove; names are relative to the lake."""

    moves: tuple[tuple[str, str], ...]
    removes: tuple[str, ...] = ()

    def to_json(self) -> str:
        """Render for the file."""
        return json.dumps({"moves": self.moves, "removes": self.removes}, indent=1)

    @classmethod
    def from_json(cls, text: str) -> "Note":
        """Read what `to_json` rendered."""
        fields = json.loads(text)
        moves = tuple((source, target) for source, target in fields["moves"])
        return cls(moves, tuple(fields["removes"]))


class Notes:
    """The notes of one app in one lake. Used by one thread; other apps may be at work beside it."""

    def __init__(self, files: HadoopFiles, app_id: str) -> None:
        self._files = files
        self._folder = f"{COMMITS}/{app_id}"
        self.last_batch = -1

    def recover(self) -> None:
        """Finish what is not done, and learn which batch was the last."""
        done = dict[int, str]()
        for entry in self._files.list(self._folder):
            if not entry.name.startswith((_BATCH, _COMPACTION)):
                self._files.delete(f"{self._folder}/{entry.name}")  # a draft nobody finished
                continue
            name = entry.name
            if name.endswith(_PENDING):
                name = self._finish(name)
            if name.startswith(_BATCH):
                done[int(name.removeprefix(_BATCH).removesuffix(_DONE))] = name
        self.last_batch = max(done, default=-1)
        for batch, name in done.items():
            if batch != self.last_batch:
                self._files.delete(f"{self._folder}/{name}")

    def commit_batch(self, batch_id: int, note: Note) -> None:
        """Make a batch visible, for good once the note is written."""
        name = f"{_BATCH}{batch_id:0{_BATCH_DIGITS}}"
        self._files.write_whole(f"{self._folder}/{name}{_PENDING}", note.to_json())
        self._carry_out(note)
        self._mark_done(f"{name}{_PENDING}")
        if self.last_batch >= 0:
            self._files.delete(f"{self._folder}/{_BATCH}{self.last_batch:0{_BATCH_DIGITS}}{_DONE}")
        self.last_batch = batch_id

    def commit_compaction(self, token: str, note: Note) -> None:
        """Put merged files in the place of small ones."""
        name = f"{_COMPACTION}{token}{_PENDING}"
        self._files.write_whole(f"{self._folder}/{name}", note.to_json())
        self._carry_out(note)
        self._mark_done(name)

    def _finish(self, name: str) -> str:
        self._carry_out(Note.from_json(self._files.read(f"{self._folder}/{name}")))
        return self._mark_done(name)

    def _carry_out(self, note: Note) -> None:
        # Hadoop's local file system copies where it cannot rename, so the directory comes first:
        # half a copy would be seen.
        for folder in {target.rpartition("/")[0] for _, target in note.moves}:
            self._files.make_directory(folder)
        # Added before removed: a crash in between shows rows twice until the note is finished,
        # and never loses one.
        for source, target in note.moves:
            self._move(source, target)
        for name in note.removes:
            self._files.delete(name)

    def _move(self, source: str, target: str) -> None:
        try:
            if self._files.rename(source, target):
                return
        except SinkError:
            # Another who finishes the same note may have been quicker.
            if not self._files.exists(target):
                raise
        if not self._files.exists(target):
            raise SinkError(
                f"{self._files.path(source)} belongs to a committed batch and is gone: "
                "was something deleted from the lake by hand?"
            )

    def _mark_done(self, name: str) -> str:
        path = f"{self._folder}/{name}"
        if name.startswith(_COMPACTION):
            self._files.delete(path)
            return name
        done = name.removesuffix(_PENDING) + _DONE
        self._files.rename(path, f"{self._folder}/{done}")
        return done


def pending_files(files: HadoopFiles) -> set[str]:
    """All files of any app that a note still has to move or to remove, by both their names."""
    named = set[str]()
    for app_id, name, _ in _pending(files):
        try:
            note = Note.from_json(files.read(f"{COMMITS}/{app_id}/{name}"))
        except SinkError:
            if files.exists(f"{COMMITS}/{app_id}/{name}"):
                raise
            continue  # done while we looked
        named.update(name for move in note.moves for name in move)
        named.update(note.removes)
    return named


def finish_abandoned(files: HadoopFiles, own_app_id: str) -> None:
    """Finish notes of others who will not come back to do it."""
    now_ms = time.time() * 1000
    for app_id, _, modified_ms in list(_pending(files)):
        if app_id != own_app_id and modified_ms < now_ms - ABANDONED_AFTER_MS:
            Notes(files, app_id).recover()


def _pending(files: HadoopFiles) -> Iterator[tuple[str, str, int]]:
    for app in files.list(COMMITS):
        for entry in files.list(f"{COMMITS}/{app.name}"):
            if entry.name.startswith((_BATCH, _COMPACTION)) and entry.name.endswith(_PENDING):
                yield app.name, entry.name, entry.modified_ms
