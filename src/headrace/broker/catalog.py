"""Topics, configs and counters in one SQLite file; Kafka keeps them in its metadata log.

Invariants, across any crash:
- a topic's row is committed before a directory of it exists;
- a topic leaves in three steps: marked `deleting`, directories renamed, row removed. Whoever
  opens the catalog next finishes what is still marked;
- the end of a block of producer ids is committed before the block is handed out.
"""

import errno
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID

from headrace.log.errors import StorageError, StorageWriteError
from headrace.model import Topic

FILE_NAME = "headrace.sqlite"
SCHEMA_VERSION = 1
PRODUCER_ID_BLOCK = 1000  # as many as Kafka's controller gives a broker at a time

_SCHEMA = """
CREATE TABLE topics (
    name TEXT PRIMARY KEY,
    topic_id BLOB NOT NULL UNIQUE CHECK (length(topic_id) = 16),
    partition_count INTEGER NOT NULL CHECK (partition_count > 0),
    leader_epoch INTEGER NOT NULL DEFAULT 0,
    is_internal INTEGER NOT NULL DEFAULT 0,
    is_deleting INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE TABLE topic_configs (
    topic TEXT NOT NULL REFERENCES topics (name) ON DELETE CASCADE,
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (topic, name)
) WITHOUT ROWID;
CREATE TABLE broker_configs (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
"""
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_ERRNO_BY_CODE = {
    sqlite3.SQLITE_FULL: errno.ENOSPC,
    sqlite3.SQLITE_READONLY: errno.EROFS,
    sqlite3.SQLITE_CANTOPEN: errno.EACCES,
    sqlite3.SQLITE_BUSY: errno.EBUSY,
}


class Catalog:
    """The catalog file. One thread at a time (once a broker runs, that of `MetadataChanges`).

    The data directory's lock keeps others out.

    A write that the disk refuses raises StorageWriteError, leaves the file as it was, and the
    catalog stays usable.
    """

    def __init__(self, data_dir: Path) -> None:
        self._path = data_dir / FILE_NAME
        with self._translated_errors():
            # Autocommit: transactions are opened by `_transaction` and nowhere else.
            self._db = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
        try:
            self._open()
        except BaseException:
            self._db.close()
            raise

    def close(self) -> None:
        """Close the file; its write-ahead log is merged in."""
        self._db.close()

    def topics(self, *, deleting: bool = False) -> list[Topic]:
        """Return the topics by name: those in use, or those whose deletion is unfinished."""
        with self._translated_errors():
            configs: dict[str, dict[str, str]] = {}
            for topic, name, value in self._db.execute("SELECT * FROM topic_configs"):
                configs.setdefault(topic, {})[name] = value
            rows = self._db.execute(
                "SELECT name, topic_id, partition_count, is_internal, leader_epoch"
                " FROM topics WHERE is_deleting = ? ORDER BY name",
                (deleting,),
            )
            return [
                Topic(name, UUID(bytes=raw_id), count, configs.get(name, {}), bool(internal), epoch)
                for name, raw_id, count, internal, epoch in rows
            ]

    def add_topics(self, topics: Iterable[Topic]) -> None:
        """Add all of them or none."""
        with self._transaction():
            for topic in topics:
                self._db.execute(
                    "INSERT INTO topics (name, topic_id, partition_count, is_internal,"
                    " leader_epoch) VALUES (?, ?, ?, ?, ?)",
                    (
                        topic.name,
                        topic.topic_id.bytes,
                        topic.partition_count,
                        topic.is_internal,
                        topic.leader_epoch,
                    ),
                )
                self._insert_configs(topic.name, topic.configs)

    def set_partition_counts(self, counts: Mapping[str, int]) -> None:
        """Give each of these topics a new number of partitions, or none of them."""
        with self._transaction():
            self._db.executemany(
                "UPDATE topics SET partition_count = ? WHERE name = ?",
                [(count, name) for name, count in counts.items()],
            )

    def set_topic_configs(self, name: str, configs: Mapping[str, str]) -> None:
        """Replace the topic's overrides."""
        with self._transaction():
            self._db.execute("DELETE FROM topic_configs WHERE topic = ?", (name,))
            self._insert_configs(name, configs)

    def mark_deleting(self, names: Iterable[str]) -> None:
        """Begin deletions: from here on they happen, whatever happens."""
        with self._transaction():
            self._db.executemany(
                "UPDATE topics SET is_deleting = 1 WHERE name = ?", [(name,) for name in names]
            )

    def remove_topics(self, names: Iterable[str]) -> None:
        """End deletions, after the directories are out of the way."""
        with self._transaction():
            self._db.executemany("DELETE FROM topics WHERE name = ?", [(name,) for name in names])

    def broker_configs(self) -> dict[str, str]:
        """Return the broker settings that were changed at run time."""
        with self._translated_errors():
            return dict(self._db.execute("SELECT name, value FROM broker_configs ORDER BY name"))

    def set_broker_configs(self, configs: Mapping[str, str]) -> None:
        """Replace the broker settings that were changed at run time."""
        with self._transaction():
            self._db.execute("DELETE FROM broker_configs")
            self._db.executemany("INSERT INTO broker_configs VALUES (?, ?)", configs.items())

    def reserve_producer_ids(self) -> range:
        """Return ids that no producer ever had, for good: what is not used of them is skipped."""
        start = self._counter("producer_id_end")
        end = start + PRODUCER_ID_BLOCK
        with self._transaction():
            self._set_counter("producer_id_end", end)
        return range(start, end)

    def skip_producer_ids_below(self, producer_id: int) -> None:
        """Never give out an id below this one: logs from elsewhere may know it."""
        if self._counter("producer_id_end") >= producer_id:
            return
        with self._transaction():
            self._set_counter("producer_id_end", producer_id)

    def _open(self) -> None:
        with self._translated_errors():
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = FULL")
            self._db.execute("PRAGMA foreign_keys = ON")
            (version,) = self._db.execute("PRAGMA user_version").fetchone()
            (verdict,) = self._db.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise self._damage(verdict)
        if version > SCHEMA_VERSION:
            raise StorageError(
                f"{self._path} was written by a newer headrace (catalog version {version}, this "
                f"one knows {SCHEMA_VERSION}); start that version or a later one"
            )
        if version == 0:
            with self._transaction():
                for statement in filter(str.strip, _SCHEMA.split(";")):
                    self._db.execute(statement)
                self._db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    def _insert_configs(self, topic: str, configs: Mapping[str, str]) -> None:
        self._db.executemany(
            "INSERT INTO topic_configs VALUES (?, ?, ?)",
            [(topic, name, value) for name, value in configs.items()],
        )

    def _counter(self, name: str) -> int:
        with self._translated_errors():
            row = self._db.execute("SELECT value FROM counters WHERE name = ?", (name,)).fetchone()
        return int(row[0]) if row else 0

    def _set_counter(self, name: str, value: int) -> None:
        self._db.execute("INSERT OR REPLACE INTO counters VALUES (?, ?)", (name, value))

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._translated_errors():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._db.execute("COMMIT")
            except BaseException:
                # A full disk makes SQLite roll back by itself.
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            # Extended codes carry the plain one in their low byte.
            code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_IOERR) & 0xFF
            if code in _DAMAGED:
                raise self._damage(str(error)) from error
            if code == sqlite3.SQLITE_CONSTRAINT:
                raise StorageError(f"{self._path}: {error}") from error
            os_error = OSError(_ERRNO_BY_CODE.get(code, errno.EIO), str(error))
            raise StorageWriteError(self._path, os_error) from error

    def _damage(self, reason: str) -> StorageError:
        return StorageError(
            f"{self._path} is damaged ({reason}); move it away and start again: topics are found "
            "anew from their directories, but their configs are lost"
        )
