"""A classic group becomes one of the new protocol, and back, while its members go on."""

import pytest
from tests.coordinators.groups.consumer.model import GROUP, Bench, Topics, durable

from headrace.coordinators.errors import GroupNotFoundError, RebalanceInProgressError
from headrace.coordinators.groups.classic.group import ClassicGroup
from headrace.coordinators.groups.consumer.downgrade import Downgrade
from headrace.coordinators.groups.consumer.migration import (
    Upgrade,
    downgraded,
    upgrade,
)
from headrace.coordinators.groups.consumer_protocol import (
    MemberAssignment,
    Subscription,
    decode_assignment,
    encode_assignment,
    encode_subscription,
)
from headrace.coordinators.groups.limits import ClassicLimits, ConsumerLimits
from headrace.coordinators.groups.messages import GroupOutcome, LeavingMember
from headrace.coordinators.groups.records import ClassicMember, GroupMetadata, Tombstone

LIMITS = ClassicLimits(0, 1_800_000, 100, 0)
WISHES = encode_subscription(Subscription(("apples",)))


def assigned(*partitions: int, user_data: bytes | None = None) -> bytes:
    return encode_assignment(MemberAssignment({"apples": partitions}, user_data))


def classic_group(
    *members: tuple[str, bytes], protocol_type: str = "consumer", wishes: bytes = WISHES
) -> ClassicGroup:
    record = GroupMetadata(
        GROUP,
        protocol_type,
        7,
        "range",
        members[0][0] if members else None,
        0,
        tuple(
            ClassicMember(name, None, "client", "/127.0.0.1", 20_000, 10_000, wishes, assignment)
            for name, assignment in members
        ),
    )
    return ClassicGroup.restore(record, LIMITS, make_member_id=str, now_ms=0)


def raise_up(bench: Bench, classic: ClassicGroup) -> Upgrade:
    """What the broker does before it lets the newcomer in."""
    up = upgrade(
        classic, bench.topics, lambda: bench.limits, make_member_id=str, now_ms=bench.now_ms
    )
    bench.group = up.group
    bench.log = list(up.records)
    return up


def leave(bench: Bench, member_id: str) -> GroupOutcome:
    bench.writes_fail = True  # a downgrade is not applied: the group is replaced
    _, outcome = bench.leave(LeavingMember(member_id))
    bench.writes_fail = False
    return outcome


@pytest.fixture
def bench() -> Bench:
    return Bench(Topics(apples=4))


def test_classic_members_keep_what_they_have_and_share_it_with_the_newcomer(bench: Bench) -> None:
    raise_up(bench, classic_group(("a", assigned(0, 1)), ("b", assigned(2, 3))))
    assert (bench.group.state, bench.group.epoch) == ("Stable", 7)
    bench.group.classic_heartbeat("a", None, 7, bench.now_ms)

    reply = bench.join("new", "apples")

    assert (reply.member_epoch, reply.assignment) == (8, {})
    with pytest.raises(RebalanceInProgressError):
        bench.group.classic_heartbeat("a", None, 7, bench.now_ms)
    described = {one.member_id: one for one in bench.group.describe().members}
    apples = bench.topics.id("apples")
    assert described["a"].assignment == {apples: (0, 1)}
    assert [described[name].member_type for name in ("a", "b", "new")] == [0, 0, 1]
    bench.group.check_commit("a", None, 7)


def test_the_records_of_the_change_begin_with_the_end_of_the_classic_group(bench: Bench) -> None:
    up = raise_up(bench, classic_group(("a", assigned(0, 1, 2, 3))))

    assert up.records[0] == Tombstone(GroupMetadata, (GROUP,))
    assert durable(bench.replayed()) == durable(up.group)


def test_the_classic_group_is_not_touched(bench: Bench) -> None:
    classic = classic_group(("a", assigned(0)))
    raise_up(bench, classic)

    classic.heartbeat("a", None, 7, 0)
    assert classic.state == "Stable"


def test_an_empty_classic_group_just_becomes_one_of_the_new_protocol(bench: Bench) -> None:
    bench.limits = ConsumerLimits(migration_policy="disabled")
    up = raise_up(bench, classic_group())

    assert up.records == [Tombstone(GroupMetadata, (GROUP,))]
    assert bench.join("new", "apples").member_epoch == 2


@pytest.mark.parametrize(
    ("policy", "classic", "words"),
    [
        ("disabled", classic_group(("a", b"")), "because online upgrade is disabled."),
        ("downgrade", classic_group(("a", b"")), "because online upgrade is disabled."),
        (
            "upgrade",
            classic_group(("a", b""), protocol_type="connect"),
            "because the group does not use the consumer embedded protocol.",
        ),
        (
            "bidirectional",
            classic_group(("a", b""), ("b", b""), ("c", b"")),
            "because the group size exceeds the consumer group maximum size.",
        ),
        (
            "upgrade",
            classic_group(("a", b""), wishes=b"?"),
            "because the embedded consumer protocol is malformed.",
        ),
        (
            "upgrade",
            classic_group(("a", assigned(0, user_data=b"of a custom assignor"))),
            "because the embedded consumer protocol is malformed.",
        ),
    ],
)
def test_a_group_that_cannot_be_changed_stays_classic(
    bench: Bench, policy: str, classic: ClassicGroup, words: str
) -> None:
    bench.limits = ConsumerLimits(migration_policy=policy, max_size=2)

    with pytest.raises(GroupNotFoundError) as refusal:
        raise_up(bench, classic)

    assert str(refusal.value).endswith(words)


def test_the_group_goes_back_when_the_last_of_the_new_protocol_leaves(bench: Bench) -> None:
    raise_up(bench, classic_group(("a", assigned(0, 1)), ("b", assigned(2, 3))))
    bench.join("new", "apples")
    epoch = bench.group.epoch

    outcome = leave(bench, "new")

    assert isinstance(outcome, Downgrade)
    assert outcome.needs_rebalance
    assert outcome.records[-1] == outcome.group
    assert (outcome.group.generation_id, outcome.group.protocol_name) == (epoch, "range")
    held = [decode_assignment(one.assignment).partitions for one in outcome.group.members]
    assert held == [{"apples": (0, 1)}, {"apples": (2, 3)}]
    for record in outcome.records[:-1]:
        bench.group.apply(record)
    assert bench.group.is_void


def test_the_classic_group_it_becomes_rebalances_at_once(bench: Bench) -> None:
    raise_up(bench, classic_group(("a", assigned(0, 1, 2, 3))))
    bench.join("new", "apples")
    outcome = leave(bench, "new")
    assert isinstance(outcome, Downgrade)

    classic, _ = downgraded(outcome, LIMITS, make_member_id=str, now_ms=bench.now_ms)

    assert (classic.state, set(classic.members)) == ("PreparingRebalance", {"a"})
    assert classic.members["a"].protocols == (("range", WISHES),)
    with pytest.raises(RebalanceInProgressError):
        classic.heartbeat("a", None, outcome.group.generation_id, bench.now_ms)


def test_it_goes_back_when_the_last_of_the_new_protocol_is_not_heard_of(bench: Bench) -> None:
    raise_up(bench, classic_group(("a", assigned(0, 1, 2, 3))))
    bench.join("new", "apples")
    bench.now_ms += 44_000
    joined, _ = bench.classic_join("a", WISHES)
    bench.classic_sync("a", joined.generation_id)
    bench.now_ms += 1_000

    assert isinstance(bench.group.tick(bench.topics, bench.now_ms), Downgrade)


@pytest.mark.parametrize("policy", ["upgrade", "disabled"])
def test_it_does_not_when_the_policy_forbids_it(bench: Bench, policy: str) -> None:
    raise_up(bench, classic_group(("a", assigned(0, 1, 2, 3))))
    bench.join("new", "apples")
    bench.limits = ConsumerLimits(migration_policy=policy)

    assert not isinstance(leave(bench, "new"), Downgrade)


def test_it_does_not_when_it_would_be_too_large(bench: Bench) -> None:
    raise_up(bench, classic_group(("a", b""), ("b", b"")))
    bench.join("new", "apples")
    bench.limits = ConsumerLimits(classic_max_size=1)

    assert not isinstance(leave(bench, "new"), Downgrade)


def test_it_does_not_when_nobody_is_left(bench: Bench) -> None:
    bench.join("new", "apples")

    assert not isinstance(leave(bench, "new"), Downgrade)


def test_a_classic_member_that_takes_the_place_of_the_last_other_ends_the_change(
    bench: Bench,
) -> None:
    given = bench.join("new", "apples", instance_id="one").assignment
    assert given is not None
    bench.writes_fail = True

    reply, outcome = bench.classic_join("", WISHES, instance_id="one")

    assert isinstance(outcome, Downgrade)
    assert not outcome.needs_rebalance
    classic, more = downgraded(outcome, LIMITS, make_member_id=str, now_ms=bench.now_ms)
    assert more.answers == []
    assert (classic.state, classic.generation_id) == ("Stable", reply.generation_id)
    (member,) = outcome.group.members
    assert (member.member_id, member.group_instance_id) == (reply.member_id, "one")
    assert decode_assignment(member.assignment).partitions == {"apples": (0, 1, 2, 3)}


def test_if_it_wishes_for_other_topics_the_group_rebalances(bench: Bench) -> None:
    bench.topics.create("pears", 1)
    bench.join("new", "apples", instance_id="one")
    bench.writes_fail = True
    other = encode_subscription(Subscription(("pears",)))

    _, outcome = bench.classic_join("", other, instance_id="one")

    assert isinstance(outcome, Downgrade)
    assert outcome.needs_rebalance


def test_a_member_that_comes_back_with_the_new_protocol_replaces_its_classic_self(
    bench: Bench,
) -> None:
    bench.join("new", "apples")
    bench.classic_join("", WISHES, instance_id="one")

    bench.join("upgraded", "apples", instance_id="one")

    types = {one.member_id: one.member_type for one in bench.group.describe().members}
    assert types == {"new": 1, "upgraded": 1}


def test_it_takes_the_place_inside_the_group_when_the_policy_forbids_to_go_back(
    bench: Bench,
) -> None:
    bench.limits = ConsumerLimits(migration_policy="upgrade", assignment_interval_ms=0)
    bench.join("new", "apples", instance_id="one")

    reply, outcome = bench.classic_join("", WISHES, instance_id="one")

    assert not isinstance(outcome, Downgrade)
    assert [one.member_id for one in bench.group.describe().members] == [reply.member_id]


def test_classic_members_have_their_session_from_the_change_on(bench: Bench) -> None:
    raise_up(bench, classic_group(("a", assigned(0, 1, 2, 3))))
    bench.join("new", "apples")
    bench.now_ms += 10_000
    bench.tick()

    assert {one.member_id for one in bench.group.describe().members} == {"new"}
