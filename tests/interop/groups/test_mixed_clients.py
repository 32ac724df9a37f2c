"""Different clients in one group, led by whichever came first."""

from collections.abc import Callable

import pytest
from tests.interop.groups.cases import need
from tests.interop.groups.group import Group
from tests.interop.groups.kinds import KINDS, Kind

MIXES = {
    "python-clients": ("confluent-range", "kafka-python-range", "aiokafka-range"),
    "led-by-aiokafka": ("aiokafka-roundrobin", "kcat-roundrobin", "confluent-roundrobin"),
    "cooperative": ("confluent-cooperative-sticky", "kafka-python-cooperative-sticky"),
    "java-and-librdkafka": ("java-range", "confluent-range", "kcat-range"),
    "librdkafka-and-java": ("confluent-range", "kcat-range", "java-range"),
    "cooperative-java": (
        *("java-cooperative-sticky", "franz-go-cooperative-sticky"),
        *("confluent-cooperative-sticky", "kafka-python-cooperative-sticky"),
    ),
    "led-by-franz-go": ("franz-go-range", "java-range", "aiokafka-range"),
    "next-protocol": ("confluent-consumer", "java-consumer", "franz-go-consumer"),
}
CORE = ("python-clients",)


def _mix(name: str) -> object:
    kinds = tuple(KINDS[each] for each in MIXES[name])
    marks = [] if name in CORE else [pytest.mark.slow]
    if any(kind.client == "java" for kind in kinds):
        marks.append(pytest.mark.java)
    marks += [pytest.mark.feature(kind.client, "groups with other clients") for kind in kinds]
    return pytest.param(kinds, id=name, marks=marks)


@pytest.mark.parametrize("kinds", [_mix(name) for name in MIXES])
def test_different_clients_share_a_group(
    kinds: tuple[Kind, ...], new_group: Callable[..., Group]
) -> None:
    need(*kinds)
    group = new_group(partitions=6)
    group.numbers.start()
    leader = group.start(kinds[0])
    group.wait_settled(members=1)

    others = group.start_all(kinds[1:])
    group.wait_settled(members=len(kinds))
    group.wait_for_progress(leader, *others)
    group.leave(leader)  # another client leads now
    group.wait_settled(members=len(others))
    group.wait_for_progress(*others)
    group.wait_for_numbers(group.numbers.stop())
    group.leave(*others)

    group.assert_each_number_once()
    assert group.committed() == group.expected_commits()
