"""Classic members inside a group of the new protocol."""

from uuid import UUID

import pytest
from tests.coordinators.groups.consumer.model import Bench, Topics

from headrace.coordinators.errors import (
    FencedInstanceError,
    GroupFullError,
    GroupRequestError,
    IllegalGenerationError,
    InconsistentProtocolError,
    MemberIdRequiredError,
    RebalanceInProgressError,
    UnknownMemberError,
)
from headrace.coordinators.groups.consumer_protocol import (
    Subscription,
    decode_assignment,
    encode_subscription,
)
from headrace.coordinators.groups.limits import ConsumerLimits
from headrace.coordinators.groups.messages import LeavingMember

WISHES = encode_subscription(Subscription(("apples",)))
ALL = (0, 1, 2, 3)


@pytest.fixture
def bench() -> Bench:
    bench = Bench(Topics(apples=4))
    bench.join("new", "apples")
    return bench


def owning(*partitions: int) -> bytes:
    return encode_subscription(Subscription(("apples",), None, {"apples": partitions}))


def partitions_of(assignment: bytes) -> tuple[int, ...]:
    return tuple(decode_assignment(assignment).partitions.get("apples", ()))


def test_a_classic_newcomer_is_sent_back_for_its_id(bench: Bench) -> None:
    reply, outcome = bench.classic_join("", WISHES)

    assert isinstance(reply.error, MemberIdRequiredError)
    assert (reply.member_id, outcome.records) == ("made-1", [])


def test_an_old_classic_newcomer_is_not(bench: Bench) -> None:
    reply, _ = bench.classic_join("", WISHES, must_know_its_id=False)

    assert (reply.error, reply.member_id, reply.generation_id) == (None, "made-1", 3)


def test_both_kinds_share_the_partitions(bench: Bench) -> None:
    apples: UUID = bench.topics.id("apples")
    reply, _ = bench.classic_join("old", WISHES)
    assert (reply.error, reply.generation_id, reply.leader) == (None, 3, "")
    assert (reply.protocol_type, reply.protocol_name) == ("consumer", "range")
    assert partitions_of(bench.classic_sync("old", 3).assignment) == ()

    bench.heartbeat("new", 2)
    bench.group.classic_heartbeat("old", None, 3, bench.now_ms)
    bench.heartbeat("new", 2, owned={apples: (0, 1)})

    with pytest.raises(RebalanceInProgressError):
        bench.group.classic_heartbeat("old", None, 3, bench.now_ms)
    again, _ = bench.classic_join("old", owning())
    assert partitions_of(bench.classic_sync("old", again.generation_id).assignment) == (2, 3)
    bench.group.classic_heartbeat("old", None, 3, bench.now_ms)
    assert bench.group.state == "Stable"
    assert [one.member_type for one in bench.group.describe().members] == [1, 0]


def test_a_classic_member_gives_up_partitions_by_joining_without_them(bench: Bench) -> None:
    bench.heartbeat("new", -1)
    bench.join("new", "apples")
    apples = bench.topics.id("apples")
    bench.classic_join("old", WISHES)
    bench.heartbeat("new", 4)
    bench.heartbeat("new", 4, owned={apples: (0, 1)})
    bench.classic_join("old", owning())
    bench.join("third", "apples")

    with pytest.raises(RebalanceInProgressError):
        bench.group.classic_heartbeat("old", None, 5, bench.now_ms)
    keeps, _ = bench.classic_join("old", owning(2, 3))
    assert keeps.generation_id == 5
    (kept,) = partitions_of(bench.classic_sync("old", 5).assignment)
    moved_on, _ = bench.classic_join("old", owning(kept))

    assert moved_on.generation_id == 6


def test_a_sync_of_another_generation_or_protocol_is_refused(bench: Bench) -> None:
    bench.classic_join("old", WISHES)

    assert isinstance(bench.classic_sync("old", 2).error, IllegalGenerationError)
    other = bench.classic_sync("old", 3, protocol_name="roundrobin")
    assert isinstance(other.error, InconsistentProtocolError)
    assert isinstance(bench.classic_sync("nobody", 3).error, UnknownMemberError)
    assert isinstance(bench.classic_sync("new", 2).error, UnknownMemberError)


def test_a_sync_behind_the_target_is_told_to_join_again(bench: Bench) -> None:
    bench.classic_join("old", WISHES)
    bench.join("third", "apples")

    assert isinstance(bench.classic_sync("old", 3).error, RebalanceInProgressError)


def test_protocols_have_to_fit_those_of_the_others(bench: Bench) -> None:
    bench.classic_join("old", WISHES)

    wrong, _ = bench.classic_join("older", WISHES, protocol="sticky")
    stranger, _ = bench.classic_join("connect", WISHES, protocol_type="connect")

    assert isinstance(wrong.error, InconsistentProtocolError)
    assert isinstance(stranger.error, InconsistentProtocolError)
    assert wrong.member_id == ""


def test_wishes_that_cannot_be_read_are_refused(bench: Bench) -> None:
    reply, _ = bench.classic_join("old", b"\x00")

    assert isinstance(reply.error, GroupRequestError)


def test_no_classic_member_joins_when_migration_is_disabled(bench: Bench) -> None:
    bench.limits = ConsumerLimits(migration_policy="disabled")

    reply, _ = bench.classic_join("old", WISHES)

    assert isinstance(reply.error, InconsistentProtocolError)
    assert "because the group migration is disabled" in str(reply.error)


def test_a_full_group_is_full_for_classic_members_too(bench: Bench) -> None:
    bench.limits = ConsumerLimits(max_size=1)

    reply, _ = bench.classic_join("old", WISHES)

    assert isinstance(reply.error, GroupFullError)


def test_a_classic_member_that_leaves_hands_on_its_partitions(bench: Bench) -> None:
    bench.classic_join("old", WISHES)

    results, _ = bench.leave(LeavingMember("old"), LeavingMember("nobody"))

    assert [type(one.error) for one in results] == [type(None), UnknownMemberError]
    assert {one.member_id for one in bench.group.describe().members} == {"new"}


def test_an_administrator_removes_an_instance_of_either_protocol(bench: Bench) -> None:
    bench.join("static", "apples", instance_id="one")

    fenced, _ = bench.leave(LeavingMember("other", "one"))
    removed, _ = bench.leave(LeavingMember("", "one"))
    unknown, _ = bench.leave(LeavingMember("", "one"))

    assert isinstance(fenced[0].error, FencedInstanceError)
    assert removed[0].error is None
    assert isinstance(unknown[0].error, UnknownMemberError)


def test_a_static_classic_member_keeps_its_instance_under_a_new_id(bench: Bench) -> None:
    first, _ = bench.classic_join("", WISHES, instance_id="one")

    second, _ = bench.classic_join("", WISHES, instance_id="one")
    old, _ = bench.classic_join(first.member_id, WISHES, instance_id="one")

    assert second.error is None
    assert second.member_id != first.member_id
    assert isinstance(old.error, FencedInstanceError)
    with pytest.raises(FencedInstanceError):
        bench.group.classic_heartbeat(first.member_id, "one", 3, bench.now_ms)
    with pytest.raises(UnknownMemberError):
        bench.group.classic_heartbeat(first.member_id, "two", 3, bench.now_ms)


def test_a_classic_member_is_fenced_when_it_does_not_sync_in_time(bench: Bench) -> None:
    bench.classic_join("old", WISHES)
    bench.now_ms += 9_000
    bench.group.classic_heartbeat("old", None, 3, bench.now_ms)
    bench.now_ms += 9_000
    bench.group.classic_heartbeat("old", None, 3, bench.now_ms)
    bench.now_ms += 2_000
    bench.tick()

    with pytest.raises(UnknownMemberError):
        bench.group.classic_heartbeat("old", None, 3, bench.now_ms)


def test_a_classic_member_is_fenced_when_it_does_not_join_again_in_time(bench: Bench) -> None:
    bench.classic_join("old", WISHES)
    bench.classic_sync("old", 3)
    bench.join("third", "apples")
    for _ in range(3):
        with pytest.raises(RebalanceInProgressError):
            bench.group.classic_heartbeat("old", None, 3, bench.now_ms)
        bench.now_ms += 9_000
    bench.tick()

    assert "old" not in {one.member_id for one in bench.group.describe().members}


def test_a_classic_member_is_fenced_after_its_own_session(bench: Bench) -> None:
    bench.classic_join("old", WISHES)
    bench.classic_sync("old", 3)
    bench.now_ms += 10_000
    bench.tick()

    assert {one.member_id for one in bench.group.describe().members} == {"new"}


def test_classic_members_that_are_left_alone_are_called_to_make_a_target(bench: Bench) -> None:
    """No one else would: without this, what the leaver had would stay with nobody."""
    bench.limits = ConsumerLimits(migration_policy="upgrade", assignment_interval_ms=0)
    apples = bench.topics.id("apples")
    bench.classic_join("old", WISHES)
    bench.heartbeat("new", 2)
    bench.heartbeat("new", 2, owned={apples: (0, 1)})
    bench.classic_join("old", owning())
    bench.classic_sync("old", 3)
    bench.group.classic_heartbeat("old", None, 3, bench.now_ms)
    bench.heartbeat("new", -1)

    with pytest.raises(RebalanceInProgressError):
        bench.group.classic_heartbeat("old", None, 3, bench.now_ms)
    reply, _ = bench.classic_join("old", owning(2, 3))
    assert partitions_of(bench.classic_sync("old", reply.generation_id).assignment) == ALL
