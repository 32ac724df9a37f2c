"""A member chooses where it reads: back, forward, not now."""

from collections.abc import Callable

import pytest
from tests.interop.groups.cases import CORE, cases, need
from tests.interop.groups.group import Group
from tests.interop.groups.kinds import Kind


def _takes_commands(kind: Kind) -> bool:
    return kind.takes_commands


def _can_pause(kind: Kind) -> bool:
    # kafka-python 3.0.12 at times never comes back to a partition that was paused while a fetch
    # for it was under way, on both engines.
    return kind.takes_commands and kind.client != "kafka-python"


def _offsets(group: Group, partition: int) -> list[int]:
    """The offsets processed in a partition, in order."""
    return [each.offset for each in list(group.journal.processed) if each.partition == partition]


@pytest.mark.feature("{kind.client}", "seek")
@pytest.mark.parametrize("kind", cases(_takes_commands, core=CORE))
def test_a_member_seeks_back(kind: Kind, new_group: Callable[..., Group]) -> None:
    need(kind)
    group = new_group(partitions=2)
    group.numbers.write(20)
    member = group.start(kind)
    group.wait_for_numbers(20)
    group.wait_committed({0: 10, 1: 10})

    member.tell("seek", partition=0, offset=4)
    group.journal.wait_until("0 is read again", lambda: len(_offsets(group, 0)) == 10 + 6)
    group.numbers.write(20)
    group.wait_committed({0: 20, 1: 20})
    group.leave(member)

    assert _offsets(group, 0) == [*range(10), *range(4, 20)]
    assert _offsets(group, 1) == [*range(20)]


@pytest.mark.feature("{kind.client}", "seek")
@pytest.mark.parametrize("kind", cases(_can_pause, core=CORE))
def test_a_member_seeks_forward(kind: Kind, new_group: Callable[..., Group]) -> None:
    need(kind)
    group = new_group(partitions=2)
    group.numbers.write(20)
    member = group.start(kind)
    group.wait_for_numbers(20)
    group.wait_committed({0: 10, 1: 10})

    member.tell("pause", partition=1)  # so that there is something to step over
    group.numbers.write(20)
    group.journal.wait_until("0 goes on", lambda: len(_offsets(group, 0)) == 20)
    member.tell("seek", partition=1, offset=15)
    member.tell("resume", partition=1)
    group.wait_committed({0: 20, 1: 20})
    group.leave(member)

    assert _offsets(group, 0) == [*range(20)]
    assert _offsets(group, 1) == [*range(10), *range(15, 20)]


@pytest.mark.feature("{kind.client}", "pause and resume")
@pytest.mark.parametrize("kind", cases(_can_pause, core=CORE))
def test_a_paused_partition_waits_while_others_go_on(
    kind: Kind, new_group: Callable[..., Group]
) -> None:
    need(kind)
    group = new_group(partitions=2)
    group.numbers.write(20)
    member = group.start(kind)
    group.wait_for_numbers(20)
    group.wait_committed({0: 10, 1: 10})

    member.tell("pause", partition=0)
    group.numbers.write(40)
    group.journal.wait_until("1 goes on", lambda: len(_offsets(group, 1)) == 30)
    while_paused = _offsets(group, 0)
    member.tell("resume", partition=0)
    group.wait_for_numbers(60)
    group.leave(member)

    assert while_paused == [*range(10)]
    group.assert_each_number_once()
    assert group.committed() == group.expected_commits()
