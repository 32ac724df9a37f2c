import asyncio
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from headrace.broker.catalog import PRODUCER_ID_BLOCK, Catalog
from headrace.broker.metadata_changes import MetadataChanges
from headrace.broker.producer_ids import ProducerIds
from headrace.log.errors import StorageWriteError


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    with closing(Catalog(tmp_path)) as catalog:
        yield catalog


def test_ids_count_up_across_blocks(catalog: Catalog) -> None:
    async def scenario() -> list[int]:
        ids = ProducerIds(catalog, MetadataChanges())
        return [await ids.next() for _ in range(PRODUCER_ID_BLOCK + 2)]

    assert asyncio.run(scenario()) == list(range(PRODUCER_ID_BLOCK + 2))


def test_those_who_ask_at_once_get_different_ids(catalog: Catalog) -> None:
    async def scenario() -> list[int]:
        ids = ProducerIds(catalog, MetadataChanges())
        return await asyncio.gather(*(ids.next() for _ in range(2 * PRODUCER_ID_BLOCK + 5)))

    assert sorted(asyncio.run(scenario())) == list(range(2 * PRODUCER_ID_BLOCK + 5))


def test_a_restart_skips_ids_and_repeats_none(catalog: Catalog) -> None:
    async def scenario() -> tuple[int, int]:
        return (
            await ProducerIds(catalog, MetadataChanges()).next(),
            await ProducerIds(catalog, MetadataChanges()).next(),
        )

    assert asyncio.run(scenario()) == (0, PRODUCER_ID_BLOCK)


def test_no_id_is_given_out_when_its_block_cannot_be_written(catalog: Catalog) -> None:
    async def scenario() -> int:
        ids = ProducerIds(catalog, MetadataChanges())
        catalog._db.execute("PRAGMA query_only = ON")
        with pytest.raises(StorageWriteError):
            await ids.next()
        catalog._db.execute("PRAGMA query_only = OFF")
        return await ids.next()

    assert asyncio.run(scenario()) == 0
