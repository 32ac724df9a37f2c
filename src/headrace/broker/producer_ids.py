"""Ids for idempotent producers: a block at a time from the catalog, one at a time from memory.

Invariant: the end of a block is committed before the first id of it is given out, so a crash skips
ids and never repeats one.
"""

from headrace.broker.catalog import Catalog
from headrace.broker.metadata_changes import MetadataChanges


class ProducerIds:
    """Event-loop thread only; the commit of a block is a change like any other."""

    def __init__(self, catalog: Catalog, changes: MetadataChanges) -> None:
        self._catalog, self._changes = catalog, changes
        self._left = range(0)

    async def next(self) -> int:
        """Return an id no producer ever had."""
        while not self._left:
            await self._changes.make(self._fill)
        producer_id, self._left = self._left[0], self._left[1:]
        return producer_id

    async def _fill(self) -> None:
        if not self._left:  # else somebody before us in the line has done it
            self._left = await self._changes.write(self._catalog.reserve_producer_ids)
