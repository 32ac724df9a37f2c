"""What holds for every assignor, and for each of them, over many groups."""

from collections import Counter
from itertools import pairwise
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.coordinators.groups.consumer.assignors import ASSIGNORS
from headrace.coordinators.groups.consumer.assignors.spec import MemberSpec
from headrace.coordinators.groups.records import Assignment

many = settings(max_examples=60)
TOPICS = [UUID(int=number) for number in range(1, 6)]
counts_of = st.dictionaries(st.sampled_from(TOPICS), st.integers(1, 9), min_size=1)
Counts = dict[UUID, int]
Targets = dict[str, Assignment]


@st.composite
def groups(draw: st.DrawFn, *, is_homogeneous: bool = False) -> tuple[list[MemberSpec], Counts]:
    counts = draw(counts_of)
    size = draw(st.integers(1, 7))
    subscriptions = st.frozensets(st.sampled_from(sorted(counts)))
    shared = draw(subscriptions) if is_homogeneous else None
    members = [
        MemberSpec(
            f"member-{number}",
            draw(st.sampled_from([None, f"instance-{9 - number}"])),
            draw(subscriptions) if shared is None else shared,
            {},
        )
        for number in range(size)
    ]
    return members, counts


def with_targets(members: list[MemberSpec], targets: Targets) -> list[MemberSpec]:
    return [one._replace(assigned=targets.get(one.member_id, {})) for one in members]


def loads(targets: Targets) -> dict[str, int]:
    return {member: sum(map(len, found.values())) for member, found in targets.items()}


def owners(targets: Targets) -> dict[tuple[UUID, int], str]:
    return {
        (topic, partition): member
        for member, found in targets.items()
        for topic, partitions in found.items()
        for partition in partitions
    }


def moved(before: Targets, after: Targets) -> int:
    """How many partitions that had an owner have another one now."""
    new_owners = owners(after)
    return sum(new_owners.get(one) != owner for one, owner in owners(before).items())


def check_complete(members: list[MemberSpec], counts: Counts, targets: Targets) -> None:
    handed_out = Counter(
        (topic, partition)
        for found in targets.values()
        for topic, partitions in found.items()
        for partition in partitions
    )
    wanted = frozenset[UUID]().union(*(member.topics for member in members))
    assert handed_out == Counter((t, p) for t in wanted for p in range(counts[t]))
    for member in members:
        assert targets[member.member_id].keys() <= member.topics
        for partitions in targets[member.member_id].values():
            assert partitions
            assert list(partitions) == sorted(partitions)


@pytest.mark.parametrize("name", ASSIGNORS)
@many
@given(group=groups())
def test_every_partition_goes_to_exactly_one_subscriber(
    name: str, group: tuple[list[MemberSpec], Counts]
) -> None:
    members, counts = group

    check_complete(members, counts, ASSIGNORS[name](members, counts))


@pytest.mark.parametrize("name", ASSIGNORS)
@many
@given(group=groups())
def test_unchanged_input_moves_nothing(name: str, group: tuple[list[MemberSpec], Counts]) -> None:
    members, counts = group
    before = ASSIGNORS[name](members, counts)

    assert ASSIGNORS[name](with_targets(members, before), counts) == before


@many
@given(group=groups(), changed=counts_of)
def test_uniform_copes_with_targets_of_topics_that_have_changed(
    group: tuple[list[MemberSpec], Counts], changed: Counts
) -> None:
    members, counts = group
    before = ASSIGNORS["uniform"](members, counts)
    now = {topic: changed.get(topic, 1) for topic in counts}

    check_complete(members, now, ASSIGNORS["uniform"](with_targets(members, before), now))


@many
@given(group=groups(is_homogeneous=True))
def test_uniform_levels_loads_when_all_subscribe_alike(
    group: tuple[list[MemberSpec], Counts],
) -> None:
    shares = loads(ASSIGNORS["uniform"](*group)).values()

    assert max(shares) - min(shares) <= 1


@many
@given(group=groups(is_homogeneous=True))
def test_uniform_moves_only_the_newcomers_share(group: tuple[list[MemberSpec], Counts]) -> None:
    members, counts = group
    before = ASSIGNORS["uniform"](members, counts)
    newcomer = MemberSpec("newcomer", None, members[0].topics, {})

    after = ASSIGNORS["uniform"]([*with_targets(members, before), newcomer], counts)

    assert moved(before, after) == loads(after)["newcomer"]


@many
@given(group=groups(is_homogeneous=True))
def test_uniform_moves_only_what_a_leaver_had(group: tuple[list[MemberSpec], Counts]) -> None:
    members, counts = group
    before = ASSIGNORS["uniform"](members, counts)
    stay = with_targets(members, before)[1:]
    if not stay:
        return

    after = ASSIGNORS["uniform"](stay, counts)

    assert moved(before, after) == loads(before)[members[0].member_id]


@many
@given(group=groups())
def test_uniform_cannot_be_levelled_any_further(group: tuple[list[MemberSpec], Counts]) -> None:
    members, counts = group
    targets = ASSIGNORS["uniform"](members, counts)
    share = loads(targets)
    passes_to = {
        one.member_id: {
            other.member_id
            for topic in targets[one.member_id]
            for other in members
            if topic in other.topics
        }
        for one in members
    }

    for giver in share:
        reached, pending = {giver}, [giver]
        while pending:
            for receiver in passes_to[pending.pop()] - reached:
                reached.add(receiver)
                pending.append(receiver)
        assert min(share[one] for one in reached) >= share[giver] - 1


@many
@given(group=groups())
def test_range_gives_each_member_one_stretch_of_a_topic(
    group: tuple[list[MemberSpec], Counts],
) -> None:
    for found in ASSIGNORS["range"](*group).values():
        for partitions in found.values():
            assert all(second == first + 1 for first, second in pairwise(partitions))


@many
@given(group=groups(is_homogeneous=True))
def test_range_gives_equal_stretches_of_topics_with_equally_many_partitions(
    group: tuple[list[MemberSpec], Counts],
) -> None:
    members, counts = group
    same = dict.fromkeys(counts, 6)

    for found in ASSIGNORS["range"](members, same).values():
        assert len(set(found.values())) <= 1


def test_range_fills_the_first_members_first() -> None:
    topic = TOPICS[0]
    members = [MemberSpec(name, None, frozenset({topic}), {}) for name in "bac"]

    targets = ASSIGNORS["range"](members, {topic: 7})

    assert targets == {"a": {topic: (0, 1, 2)}, "b": {topic: (3, 4)}, "c": {topic: (5, 6)}}


def test_range_keeps_the_place_of_a_static_member_that_returns_under_a_new_id() -> None:
    topic = TOPICS[0]
    before = [
        MemberSpec("x", "one", frozenset({topic}), {}),
        MemberSpec("a", "two", frozenset({topic}), {}),
        MemberSpec("0", None, frozenset({topic}), {}),
    ]
    after = [MemberSpec("zzz", "one", frozenset({topic}), {}), *before[1:]]

    first = ASSIGNORS["range"](before, {topic: 3})
    second = ASSIGNORS["range"](after, {topic: 3})

    assert first["x"] == second["zzz"] == {topic: (0,)}
    assert first["a"] == second["a"] == {topic: (1,)}


def test_uniform_passes_partitions_on_through_others() -> None:
    """a can give only to b, and b only to c: a chain levels what no single move could."""
    first, second = TOPICS[:2]
    had: dict[str, Assignment] = {"a": {first: (0, 1, 2)}, "b": {first: (3,), second: (0,)}}
    members = [
        MemberSpec("a", None, frozenset({first}), had["a"]),
        MemberSpec("b", None, frozenset({first, second}), had["b"]),
        MemberSpec("c", None, frozenset({second}), {}),
    ]

    targets = ASSIGNORS["uniform"](members, {first: 4, second: 1})

    assert sorted(loads(targets).values()) == [1, 2, 2]
    assert targets["c"] == {second: (0,)}


def test_no_members_get_nothing() -> None:
    assert ASSIGNORS["uniform"]([], {TOPICS[0]: 1}) == {}
    assert ASSIGNORS["range"]([], {TOPICS[0]: 1}) == {}
