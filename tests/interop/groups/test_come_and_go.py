"""Members come and go while messages flow: nobody's messages are skipped, none is done twice."""

from collections.abc import Callable

import pytest
from tests.interop.groups.cases import CORE_WITH_KCAT, cases, need
from tests.interop.groups.group import Group
from tests.interop.groups.kinds import Kind

SHORT_SESSION_MS = 3000


@pytest.mark.feature("{kind.client}", "{kind.feature}")
@pytest.mark.parametrize("kind", cases(core=CORE_WITH_KCAT))
def test_every_message_is_processed_once_while_members_come_and_leave(
    kind: Kind, new_group: Callable[..., Group]
) -> None:
    need(kind)
    group = new_group(partitions=6)
    group.numbers.start()

    first = group.start(kind)
    group.wait_for_progress(first)
    second = group.start(kind)
    group.wait_for_progress(second)
    group.leave(first)
    group.wait_for_progress(second, messages=6)
    later = group.start_all([kind] * 4)
    group.wait_settled(members=5)
    group.wait_for_progress(second, *later)
    group.leave(second, *later[:3])
    group.wait_for_progress(later[3], messages=6)
    written = group.numbers.stop()
    group.wait_for_numbers(written)
    group.leave(later[3])

    group.assert_each_number_once()
    assert group.committed() == group.expected_commits()


@pytest.mark.feature("{kind.client}", "takes over from a killed member")
@pytest.mark.parametrize("kind", cases(core=()))
def test_nothing_is_skipped_when_a_member_is_killed(
    kind: Kind, new_group: Callable[..., Group]
) -> None:
    need(kind)
    group = new_group(partitions=6)
    group.numbers.start()
    survivor, victim, other = group.start_all([kind] * 3, session_timeout_ms=SHORT_SESSION_MS)
    group.wait_settled(members=3)
    group.wait_for_progress(survivor, victim, other)

    victim.kill()

    group.wait_settled(members=2)
    group.wait_for_progress(survivor, other)
    group.wait_for_numbers(group.numbers.stop())
    group.leave(survivor, other)
    group.assert_no_number_skipped()
    assert group.committed() == group.expected_commits()


@pytest.mark.feature("{kind.client}", "commit and resume")
@pytest.mark.parametrize("kind", cases(core=CORE_WITH_KCAT))
def test_a_group_goes_on_where_it_was_when_all_had_left(
    kind: Kind, new_group: Callable[..., Group]
) -> None:
    need(kind)
    group = new_group(partitions=3)
    group.numbers.write(30)
    before = group.start(kind)
    group.wait_for_numbers(30)
    group.leave(before)
    group.wait_empty()
    assert group.committed() == group.expected_commits()

    group.numbers.write(30)
    after = group.start(kind)
    group.wait_for_numbers(60)
    group.leave(after)

    assert after.processed_count == 30
    group.assert_each_number_once()
    assert group.committed() == group.expected_commits()
