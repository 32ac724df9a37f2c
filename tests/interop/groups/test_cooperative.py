"""Cooperative rebalances: only what moves is revoked, and the rest goes on meanwhile."""

from collections.abc import Callable

import pytest
from tests.interop.groups.cases import cases, need
from tests.interop.groups.group import Group
from tests.interop.groups.kinds import Kind


def _shows_cooperation(kind: Kind) -> bool:
    return kind.is_cooperative and kind.tells_assignment


@pytest.mark.feature("{kind.client}", "cooperative rebalancing")
@pytest.mark.parametrize("kind", cases(_shows_cooperation, core=("confluent-cooperative-sticky",)))
def test_only_the_partitions_that_move_are_revoked(
    kind: Kind, new_group: Callable[..., Group]
) -> None:
    need(kind)
    group = new_group(partitions=4)
    group.numbers.start()
    first = group.start(kind)
    group.wait_settled(members=1)
    group.wait_for_progress(first)

    second = group.start(kind)
    group.wait_settled(members=2)
    group.wait_for_progress(first, second)
    group.wait_for_numbers(group.numbers.stop())

    revoked = [
        set(event["partitions"])
        for event in group.journal.of(first.name, "revoked")
        if event["partitions"]
    ]
    assert revoked == [second.assignment]
    assert len(first.assignment) == len(second.assignment) == 2
    group.leave(second)
    group.wait_settled(members=1)
    group.journal.wait_until("all is back", lambda: len(first.assignment) == 4)
    assert len([e for e in group.journal.of(first.name, "revoked") if e["partitions"]]) == 1
    group.leave(first)
    group.assert_each_number_once()
