"""A group changes from the classic to the next protocol and back while messages flow (KIP-848)."""

from collections.abc import Callable

import pytest
from tests.interop.groups.cases import need
from tests.interop.groups.group import Group
from tests.interop.groups.kinds import KINDS, Kind

pytestmark = pytest.mark.slow


def _pair(classic: str, consumer: str) -> object:
    old, new = KINDS[classic], KINDS[consumer]
    marks = [pytest.mark.java] if "java" in (old.client, new.client) else []
    marks += [
        pytest.mark.feature(client, "change of protocol online")
        for client in sorted({old.client, new.client})
    ]
    return pytest.param(old, new, id=f"{classic}-to-{consumer}", marks=marks)


# Not librdkafka's cooperative-sticky: it leaves user data in its assignments, and both engines
# refuse the upgrade of such a group (GROUP_ID_NOT_FOUND).
PAIRS = (
    _pair("confluent-range", "confluent-consumer"),
    _pair("franz-go-cooperative-sticky", "franz-go-consumer"),
    _pair("java-cooperative-sticky", "java-consumer"),
    _pair("kafka-python-range", "confluent-consumer"),
)


@pytest.mark.parametrize(("old", "new"), PAIRS)
def test_a_group_changes_its_protocol_online_and_back(
    old: Kind, new: Kind, new_group: Callable[..., Group]
) -> None:
    need(old, new)
    group = new_group(partitions=6)
    group.numbers.start()

    olds = group.start_all([old, old])
    group.wait_settled(members=2)
    group.wait_for_progress(*olds)
    types = [group.type()]
    first_new = group.start(new)  # the upgrade: the others are served the classic protocol
    group.wait_settled(members=3)
    group.wait_for_progress(*olds, first_new)
    types.append(group.type())
    group.leave(olds[0])
    second_new = group.start(new)
    group.wait_settled(members=3)
    group.wait_for_progress(olds[1], first_new, second_new)
    group.leave(olds[1])
    group.wait_settled(members=2)
    group.wait_for_progress(first_new, second_new)
    types.append(group.type())

    back = group.start(old)
    group.wait_settled(members=3)
    group.wait_for_progress(back, first_new, second_new)
    types.append(group.type())
    group.leave(first_new)
    group.leave(second_new)  # the last of the new ones: the group is a classic one again
    group.wait_settled(members=1)
    group.wait_for_progress(back)
    types.append(group.type())
    group.wait_for_numbers(group.numbers.stop())
    group.leave(back)

    assert types == ["CLASSIC", "CONSUMER", "CONSUMER", "CONSUMER", "CLASSIC"]
    # The way back fences the classic members that are there (as Kafka 4.3.1 does): what they had
    # not yet committed they do again. Before that nothing is done twice.
    group.assert_each_number_once(but_for=back)
    assert group.committed() == group.expected_commits()
