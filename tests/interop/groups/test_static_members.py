"""Static members (KIP-345): whoever comes back under the same name gets the same partitions."""

from collections.abc import Callable

import pytest
from tests.interop.groups.cases import cases, need
from tests.interop.groups.group import Group
from tests.interop.groups.journal import Event
from tests.interop.groups.kinds import Kind
from tests.interop.groups.member_process import MemberProcess

LONG_SESSION_MS = 30_000


def _can_be_static(kind: Kind) -> bool:
    # KafkaJS 2.2.4 has no group.instance.id. franz-go 1.22.2 comes back in the next protocol only
    # when the session of its forerunner is over, on both engines: then its partitions have moved.
    return kind.client != "kafkajs" and kind.name != "franz-go-consumer"


def _owned(group: Group) -> dict[str, set[int]]:
    """What the broker says: partitions by instance id."""
    return {
        member.group_instance_id: {each.partition for each in member.assignment.topic_partitions}
        for member in group.describe().members
    }


def _changes(group: Group, member: MemberProcess) -> list[Event]:
    """What a member was told of its partitions, without the news that nothing changed."""
    told = group.journal.of(member.name, "assigned", "revoked", "lost")
    return [event for event in told if event["partitions"]]


@pytest.mark.feature("{kind.client}", "static members")
@pytest.mark.parametrize("kind", cases(_can_be_static, core=()))
def test_a_static_member_that_comes_back_disturbs_nobody(
    kind: Kind, new_group: Callable[..., Group]
) -> None:
    need(kind)
    group = new_group(partitions=4)
    group.numbers.start()
    stable = group.start(kind, instance_id="a", session_timeout_ms=LONG_SESSION_MS)
    restarted = group.start(kind, instance_id="b", session_timeout_ms=LONG_SESSION_MS)
    group.wait_settled(members=2)
    group.wait_for_progress(stable, restarted)
    before = _owned(group)
    changes_before = _changes(group, stable)

    if kind.protocol == "classic":
        restarted.kill()
    else:  # the next protocol lets nobody take the name of a member that has not said goodbye
        group.leave(restarted)
    again = group.start(kind, instance_id="b", session_timeout_ms=LONG_SESSION_MS)
    group.wait_for_progress(again)
    group.wait_for_numbers(group.numbers.stop())

    assert _owned(group) == before
    assert _changes(group, stable) == changes_before
    group.assert_no_number_skipped()


def _tells_when_fenced(kind: Kind) -> bool:
    # kafka-python 3.0.12 says nothing, on both engines; the other clients were not looked at.
    return kind.client == "confluent" and kind.protocol == "classic"


@pytest.mark.feature("{kind.client}", "static members")
@pytest.mark.parametrize("kind", cases(_tells_when_fenced, core=()))
def test_the_older_of_two_members_with_one_instance_id_is_fenced(
    kind: Kind, new_group: Callable[..., Group]
) -> None:
    need(kind)
    group = new_group(partitions=2)
    older = group.start(kind, instance_id="only-one")
    group.wait_settled(members=1)
    older.expect_end()

    newer = group.start(kind, instance_id="only-one")

    group.journal.wait_until(
        "the older one is told", lambda: bool(group.journal.of(older.name, "error"))
    )
    told = group.journal.of(older.name, "error")[0]
    assert told["name"].lstrip("_") in ("FENCED_INSTANCE_ID", "FATAL")
    group.numbers.write(4)
    group.wait_for_numbers(4)
    assert newer.processed_count == 4
    assert [member.group_instance_id for member in group.describe().members] == ["only-one"]
