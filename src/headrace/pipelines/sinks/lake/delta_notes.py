"""What an app has in a Delta table: said in the very commit, and kept beside the table.

Every commit of ours has a version (`txnVersion`), the app's last and one more, whatever the batch's
number. Of two attempts at one version Delta takes one, and the commit's `userMetadata` says which
and what the app has written with it, so both are in force or neither. Delta's log is cleaned in
time; a file in `_headrace/delta/<app>` keeps what the last commit said.
"""

import json
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from headrace.pipelines.errors import SinkError
from headrace.pipelines.hadoop_files import HadoopFiles, TakenError
from headrace.pipelines.sinks.lake.delta_table import DeltaTable
from headrace.pipelines.sinks.lake.layout import DELTA_LOG
from headrace.pipelines.sinks.lake.notes import HOME
from headrace.pipelines.spans import Batch, Written

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NO_VERSION = -1
_LOG_DIGITS = 20
_MARK = "headrace"  # of our part of a commit's user metadata
# The lines of a commit that are looked at; the others, of which there are many, are of files.
_LINES = ('{"txn"', '{"commitInfo"')


@dataclass(frozen=True, slots=True)
class DeltaNote:
    """What a commit says: whose it is, and what the app has with it."""

    attempt: str
    written: Written

    def to_json(self) -> dict[str, Any]:
        """Render for a commit and for the file."""
        return {"attempt": self.attempt, "written": json.loads(self.written.to_json())}

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> "DeltaNote":
        """Read what `to_json` rendered."""
        return cls(fields["attempt"], Written.from_json(json.dumps(fields["written"])))


class DeltaNotes:
    """The notes of one app in one table. Used by one thread."""

    def __init__(self, spark: "SparkSession", path: str, app_id: str) -> None:
        self._files = HadoopFiles(spark, path)
        self._folder = f"{HOME}/delta/{app_id}"
        self._app_id = app_id
        self._table_id = ""
        self._is_kept = False
        # Of the last commit of this app that was seen.
        self.version = NO_VERSION
        self.said = DeltaNote("", Written())

    def refresh(self, table: DeltaTable | None) -> None:
        """Learn what the table has; None: there is none."""
        version = table.version_of(self._app_id) if table else NO_VERSION
        table_id = table.table_id if table else ""
        if (table_id, version) == (self._table_id, self.version):
            return
        self._table_id, self.version, self._is_kept = table_id, version, False
        self.said = DeltaNote("", Written())
        if table and version != NO_VERSION:
            self.said = self._kept() or self._committed(table)

    def next(self, batch: Batch) -> DeltaNote:
        """What the next commit will say. What the last one said is kept first."""
        self.keep()
        return DeltaNote(uuid4().hex, self.said.written.after(batch))

    def keep(self) -> None:
        """Put what was learnt beside the table, in place of what was kept before."""
        if self._is_kept:
            return
        name = f"{self.version}.json"
        note = {"table": self._table_id, **self.said.to_json()}
        # One of this name is of a table that was deleted since.
        self._files.delete(f"{self._folder}/{name}")
        # Another may keep it at this moment, but of one commit there is one thing to say.
        with suppress(TakenError):
            self._files.write_whole(f"{self._folder}/{name}", json.dumps(note))
        for entry in self._files.list(self._folder):
            if entry.name != name:
                self._files.delete(f"{self._folder}/{entry.name}")
        self._is_kept = True

    def _kept(self) -> DeltaNote | None:
        name = f"{self._folder}/{self.version}.json"
        if not self._files.exists(name):
            return None
        note = json.loads(self._files.read(name))
        # The table may have been deleted and made again, which counts anew.
        if note.pop("table") != self._table_id:
            return None
        self._is_kept = True
        return DeltaNote.from_json(note)

    def _committed(self, table: DeltaTable) -> DeltaNote:
        """Look for the commit in Delta's log, from its end."""
        names = {entry.name for entry in self._files.list(DELTA_LOG)}
        for number in range(table.version, -1, -1):
            name = f"{number:0{_LOG_DIGITS}}.json"
            if name not in names:
                break
            lines = self._files.read(f"{DELTA_LOG}/{name}").splitlines()
            actions = [json.loads(line) for line in lines if line.startswith(_LINES)]
            if any(self._is_ours(action.get("txn", {})) for action in actions):
                return _said_in(actions) or DeltaNote("", Written.former(self.version))
        # An older version, which took the batch's number, kept no files.
        if self._files.list(self._folder):
            raise SinkError(
                f"Delta's log of {self._files.root} no longer has version {self.version} of app "
                f"{self._app_id}, and no file in {self._folder} says what was written with it; "
                "begin anew with another table and another checkpoint"
            )
        return DeltaNote("", Written.former(self.version))

    def _is_ours(self, txn: dict[str, Any]) -> bool:
        return (txn.get("appId"), txn.get("version")) == (self._app_id, self.version)


def user_metadata(said: DeltaNote) -> str:
    """What a commit carries."""
    return json.dumps({_MARK: said.to_json()})


def _said_in(actions: list[dict[str, Any]]) -> DeltaNote | None:
    for action in actions:
        text = action.get("commitInfo", {}).get("userMetadata") or ""
        if text.startswith(f'{{"{_MARK}"'):
            return DeltaNote.from_json(json.loads(text)[_MARK])
    return None
