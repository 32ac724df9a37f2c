import asyncio
from typing import Any

import pytest
from tests.coordinators.groups.desk import Desk

from headrace.broker.groups.pattern_resolver import PatternResolver
from headrace.coordinators.groups.consumer.group import ConsumerGroup
from headrace.coordinators.groups.consumer.patterns import NAMES_AT_ONCE
from headrace.coordinators.groups.decision import Decision
from headrace.coordinators.groups.messages import ConsumerHeartbeatRequest, TopicShape
from headrace.coordinators.groups.records import ResolvedRegex

SLICES = 5


class Watched(PatternResolver):
    """Searches whose decisions are carried out by the desk, and counted."""

    def __init__(self, desk: Desk) -> None:
        self.carried_out: list[Decision[Any]] = []

        def carry_out(decision: Decision[Any]) -> None:
            self.carried_out.append(decision)
            desk.carry_out(decision)

        class Clock:
            def steady_ms(self) -> int:
                return desk.now_ms

        super().__init__(desk.coordinator, Clock(), carry_out)  # type: ignore[arg-type]


@pytest.fixture
def desk() -> Desk:
    """A coordinator with many topics, and one member that subscribes to all of them."""
    desk = Desk()
    shape = desk.topics.by_name["t"]
    names = (f"t{number}" for number in range(SLICES * NAMES_AT_ONCE - 1))
    desk.topics.by_name |= {name: TopicShape(shape.topic_id, name, 1) for name in names}
    request = ConsumerHeartbeatRequest(
        "g", "a", 0, None, None, 1000, None, "t.*", None, {}, "client", "/127.0.0.1"
    )
    desk.carry_out(desk.coordinator.consumer_heartbeat(request, desk.now_ms))
    return desk


def resolved(desk: Desk) -> list[ResolvedRegex]:
    return [record for record in desk.log if isinstance(record, ResolvedRegex)]


def test_others_have_their_turn_while_names_are_matched(desk: Desk) -> None:
    async def play() -> None:
        searches, turns = Watched(desk), 0

        searches.start_due()
        while not searches.carried_out:
            turns += 1
            await asyncio.sleep(0)

        assert turns >= SLICES
        (found,) = resolved(desk)
        assert len(found.topics) == SLICES * NAMES_AT_ONCE

    asyncio.run(play())


def test_a_group_that_is_searched_for_is_not_searched_for_twice(desk: Desk) -> None:
    async def play() -> None:
        searches = Watched(desk)
        searches.start_due()
        await asyncio.sleep(0)

        desk.beat("g", "a", 1)

        assert not desk.coordinator.has_unresolved

    asyncio.run(play())


def test_what_is_under_way_is_let_go_at_the_end_and_would_begin_anew(desk: Desk) -> None:
    async def play() -> None:
        searches = Watched(desk)
        group = desk.coordinator.registry.by_id.get("g")
        assert isinstance(group, ConsumerGroup)
        searches.start_due()
        await asyncio.sleep(0)

        searches.stop()
        await asyncio.gather(*searches._running, return_exceptions=True)

        assert searches.carried_out == []
        assert group.resolution.is_due(desk.topics)

    asyncio.run(play())


def test_a_group_that_is_gone_by_then_writes_nothing(desk: Desk) -> None:
    async def play() -> None:
        searches = Watched(desk)
        searches.start_due()
        await asyncio.sleep(0)

        desk.coordinator.registry.remove("g")
        await asyncio.gather(*searches._running)

        assert [decision.records for decision in searches.carried_out] == [()]
        assert resolved(desk) == []

    asyncio.run(play())
