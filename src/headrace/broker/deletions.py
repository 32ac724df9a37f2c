"""What becomes of deleted topics: logs are let go, directories renamed, rows and files removed.

The mark in the catalog comes first and stands until nothing of the topic can come back; whoever
opens the catalog next, or wants the name again, finishes what is still marked.
"""

import asyncio
import logging
import threading
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

from headrace.broker.catalog import Catalog
from headrace.broker.metadata_changes import MetadataChanges
from headrace.broker.turns import Turn
from headrace.log.directory import LogDirectory
from headrace.log.errors import StorageError
from headrace.log.removal import remove_renamed, rename_away
from headrace.model import Topic, TopicPartition

_log = logging.getLogger(__name__)


class Deletions:
    """Topics that are marked as deleted and not gone yet. Event-loop thread only."""

    def __init__(self, catalog: Catalog, logs: LogDirectory, changes: MetadataChanges) -> None:
        self._catalog, self._logs, self._changes = catalog, logs, changes
        self._marked = {topic.name: topic for topic in catalog.topics(deleting=True)}
        self._removals: set[asyncio.Task[None]] = set()
        self._is_stopped = threading.Event()

    def finish_at_start(self) -> None:
        """Finish what an earlier run left; nobody is served yet."""
        partitions = [one for name in self._marked for one in self._partitions(name)]
        if not partitions:
            return
        try:
            for partition in partitions:
                self._logs.forget(partition)
            renamed = self._put_away(partitions, list(self._marked))
        except StorageError as error:
            _warn(error)
            return
        self._marked.clear()
        remove_renamed(renamed, lambda: False)

    def note(self, topics: Iterable[Topic]) -> None:
        """These were marked in the catalog."""
        self._marked |= {topic.name: topic for topic in topics}

    async def try_finish(self, names: Sequence[str]) -> None:
        """Finish these; what the disk refuses is done when the name is wanted again, or later."""
        try:
            await self.finish(names)
        except StorageError as error:
            _warn(error)

    async def finish(self, names: Sequence[str]) -> None:
        """Finish those of these that are marked: from here on their names are free."""
        marked = [name for name in names if name in self._marked]
        if not marked:
            return
        partitions = [one for name in marked for one in self._partitions(name)]
        turn = Turn()
        for partition in partitions:
            self._logs.forget(partition)
            if turn.is_over:
                await turn.breathe()
        renamed = await self._changes.write(partial(self._put_away, partitions, marked))
        for name in marked:
            del self._marked[name]
        self._remove_later(renamed)

    def _put_away(self, partitions: Sequence[TopicPartition], names: Sequence[str]) -> list[Path]:
        """Waits for the disk: the names of directories, then the rows."""
        try:
            renamed = rename_away(self._logs.path, partitions)
        except OSError as error:
            raise StorageError(f"{self._logs.path}: {error.strerror}") from error
        self._catalog.remove_topics(names)
        return renamed

    def _partitions(self, name: str) -> list[TopicPartition]:
        return [TopicPartition(name, at) for at in range(self._marked[name].partition_count)]

    # --- files, which nobody waits for

    def _remove_later(self, renamed: list[Path]) -> None:
        if not renamed:
            return
        remove = asyncio.to_thread(remove_renamed, renamed, self._is_stopped.is_set)
        task = asyncio.create_task(remove)
        self._removals.add(task)
        task.add_done_callback(self._removals.discard)

    async def drain(self) -> None:
        """The broker stops: leave the rest of the files to the next start."""
        self._is_stopped.set()
        await asyncio.gather(*self._removals)


def _warn(error: StorageError) -> None:
    _log.warning("a deleted topic is still on disk: %s", error)
