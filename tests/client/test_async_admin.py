import asyncio

import pytest

from headrace import AsyncAdmin, BusError
from headrace.testing import running_broker

PATIENCE_S = 120.0


def test_questions_are_awaited_and_failures_are_the_same() -> None:
    async def main() -> None:
        async with AsyncAdmin(broker.bus, timeout_s=PATIENCE_S) as admin:
            assert await admin.create_topic("orders", partitions=2)
            with pytest.raises(BusError) as told:
                await admin.create_topic("orders")
            assert told.value.name == "TOPIC_ALREADY_EXISTS"
            both = [("orders", 0), ("orders", 1)]
            ends, ids = await asyncio.gather(admin.end_offsets(both), admin.topic_ids(["orders"]))
            assert (ends, [*ids]) == (dict.fromkeys(both, 0), ["orders"])
        with pytest.raises(RuntimeError):
            await admin.cluster_id()

    with running_broker() as broker:
        asyncio.run(main())
