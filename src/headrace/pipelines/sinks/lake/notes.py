"""Commit notes: what makes a batch visible in a lake of plain directories, wholly and once.

A note is written whole before the first file is moved, and marked done after the last. All that
it asks for can be done twice, so whoever finds one that is not done finishes it. It also says what
the app has written with it (`Written`), so that both are there or neither.

Notes of an app are numbered by a sequence of their own, not by the batch: the next number can be
taken once, and is taken only when the note before it is done. So a note that is not done, though
one with its number or a later one is, comes from an attempt that was overtaken: it is void. Notes
do not pile up: of each app the last done one is kept, and what is not done.
"""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass

from headrace.pipelines.errors import SinkError
from headrace.pipelines.hadoop_files import HadoopFiles, TakenError
from headrace.pipelines.spans import Written

# Hidden from Spark, DuckDB and pyarrow by its first letter.
HOME = "_headrace"
COMMITS = f"{HOME}/commits"
STAGING = f"{HOME}/staging"

_BATCH, _COMPACTION = "batch-", "compaction-"
_PENDING, _DONE = ".json", ".done"
_DIGITS = 19  # of the largest number, so that names sort as numbers do
_NO_NOTE = -1
# Another app's note or staging directory is left alone until it is this old: no batch takes as
# long, so its writer is dead.
ABANDONED_AFTER_MS = 24 * 3600 * 1000

Moves = tuple[tuple[str, str], ...]  # from, to


class OvertakenError(SinkError):
    """Another attempt at this app's batches wrote meanwhile; the run may try again."""

    is_retriable = True

    def __init__(self, place: str) -> None:
        super().__init__(
            f"another attempt of this run wrote to {place} meanwhile: "
            "is an earlier one of the same checkpoint still at work?"
        )


@dataclass(frozen=True, slots=True)
class LakeNote:
    """Files to move into place, then files to remove; names are relative to the lake."""

    moves: Moves
    removes: tuple[str, ...] = ()
    # Of a batch: what the app has with it. None: its number is all that was noted, by an older
    # version, which took the batch's.
    written: Written | None = None

    def to_json(self) -> str:
        """Render for the file."""
        fields = {"moves": self.moves, "removes": self.removes}
        if self.written is not None:
            fields |= {"written": json.loads(self.written.to_json())}
        return json.dumps(fields, indent=1)

    @classmethod
    def from_json(cls, text: str) -> "LakeNote":
        """Read what `to_json` rendered."""
        fields = json.loads(text)
        moves = tuple((source, target) for source, target in fields["moves"])
        written = fields.get("written")
        return cls(
            moves,
            tuple(fields["removes"]),
            None if written is None else Written.from_json(json.dumps(written)),
        )


class LakeNotes:
    """The notes of one app in one lake. Used by one thread; other apps may be at work beside it."""

    def __init__(self, files: HadoopFiles, app_id: str) -> None:
        self._files = files
        self._folder = f"{COMMITS}/{app_id}"
        self._last = _NO_NOTE
        # What the last note says, as far as it was read: what `commit_batch` builds on.
        self.noted = Written()

    @property
    def next_number(self) -> int:
        """Of the note that `commit_batch` will write."""
        return self._last + 1

    def refresh(self) -> None:
        """See whether what was read still is so: the lake may have been deleted meanwhile."""
        names = [name for name in self._names() if name.startswith(_BATCH)]
        if names != ([] if self._last == _NO_NOTE else [_name(self._last, _DONE)]):
            self.recover()

    def recover(self) -> None:
        """Finish what is not done, and learn what the last note says."""
        names = self._names()
        for name in names:
            if name.startswith(_COMPACTION):
                self._finish_compaction(name)
        batches = [name for name in names if name.startswith(_BATCH)]
        self._last = max((_number(name) for name in batches), default=_NO_NOTE)
        if self._last == _NO_NOTE:
            self.noted = Written()
            return
        last = _name(self._last, _DONE)
        if last not in batches:
            last = _name(self._last, _PENDING)
        note = LakeNote.from_json(self._files.read(f"{self._folder}/{last}"))
        if last.endswith(_PENDING):
            self._carry_out(note)
            self._mark_done(last)
        self.noted = note.written or Written.former(self._last)
        for name in batches:
            if name != last:  # an older one, or void
                self._files.delete(f"{self._folder}/{name}")

    def commit_batch(self, moves: Moves, written: Written) -> bool:
        """Make a batch visible, for good once the note is written.

        False, and nothing is done, if another has written a note since the last look.
        """
        number = self.next_number
        pending = _name(number, _PENDING)
        note = LakeNote(moves, written=written)
        try:
            self._files.write_whole(f"{self._folder}/{pending}", note.to_json())
        except TakenError:
            return False
        if self._is_void(number):
            self._files.delete(f"{self._folder}/{pending}")
            return False
        self._carry_out(note)
        self._mark_done(pending)
        if self._last != _NO_NOTE:
            self._files.delete(f"{self._folder}/{_name(self._last, _DONE)}")
        self._last, self.noted = number, written
        return True

    def commit_compaction(self, token: str, note: LakeNote) -> None:
        """Put merged files in the place of small ones."""
        name = f"{_COMPACTION}{token}{_PENDING}"
        self._files.write_whole(f"{self._folder}/{name}", note.to_json())
        self._carry_out(note)
        self._files.delete(f"{self._folder}/{name}")

    def _names(self) -> list[str]:
        """Of all notes. Drafts that nobody finished are removed."""
        names = list[str]()
        for entry in self._files.list(self._folder):
            if entry.name.startswith((_BATCH, _COMPACTION)):
                names.append(entry.name)
            else:
                self._files.delete(f"{self._folder}/{entry.name}")
        return names

    def _is_void(self, number: int) -> bool:
        """Whether the app has gone on without the note just written."""
        numbers = [
            (_number(entry.name), entry.name.endswith(_DONE))
            for entry in self._files.list(self._folder)
            if entry.name.startswith(_BATCH)
        ]
        return any(each > number or (each == number and is_done) for each, is_done in numbers)

    def _finish_compaction(self, name: str) -> None:
        note = LakeNote.from_json(self._files.read(f"{self._folder}/{name}"))
        # One that was overtaken speaks of files that were cleared away. Nothing is removed before
        # all is moved, so the small files are still there.
        if all(self._files.exists(each[1]) or self._files.exists(each[0]) for each in note.moves):
            self._carry_out(note)
        self._files.delete(f"{self._folder}/{name}")

    def _carry_out(self, note: LakeNote) -> None:
        # Hadoop's local file system copies where it cannot rename, so the directory comes first:
        # half a copy would be seen.
        for folder in {target.rpartition("/")[0] for _, target in note.moves}:
            self._files.make_directory(folder)
        # Added before removed: a crash in between shows rows twice until the note is finished,
        # and never loses one.
        for source, target in note.moves:
            # No other note has this target, so if it is there somebody else was quicker.
            if not self._files.rename(source, target) and not self._files.exists(target):
                raise SinkError(
                    f"{self._files.path(source)} belongs to a committed batch and is gone: "
                    "was something deleted from the lake by hand? To go on without it, rename "
                    f"the note in {self._files.path(self._folder)} from {_PENDING} to {_DONE}"
                )
        for name in note.removes:
            self._files.delete(name)

    def _mark_done(self, pending: str) -> None:
        path = f"{self._folder}/{pending}"
        if not self._files.rename(path, path.removesuffix(_PENDING) + _DONE):
            self._files.delete(path)  # another was quicker


def pending_files(files: HadoopFiles) -> set[str]:
    """All files of any app that a note still has to move or to remove, by both their names."""
    named = set[str]()
    for app_id, name, _ in _pending(files):
        try:
            note = LakeNote.from_json(files.read(f"{COMMITS}/{app_id}/{name}"))
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
            LakeNotes(files, app_id).recover()


def _name(number: int, ending: str) -> str:
    return f"{_BATCH}{number:0{_DIGITS}}{ending}"


def _number(name: str) -> int:
    return int(name.removeprefix(_BATCH).partition(".")[0])


def _pending(files: HadoopFiles) -> Iterator[tuple[str, str, int]]:
    for app in files.list(COMMITS):
        for entry in files.list(f"{COMMITS}/{app.name}"):
            if entry.name.startswith((_BATCH, _COMPACTION)) and entry.name.endswith(_PENDING):
                yield app.name, entry.name, entry.modified_ms
