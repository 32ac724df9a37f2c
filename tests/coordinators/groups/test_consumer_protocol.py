"""The bytes that consumers hand each other through a classic group."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.coordinators.groups.consumer_protocol import (
    MemberAssignment,
    Subscription,
    decode_assignment,
    decode_subscription,
    decode_topics,
    encode_assignment,
    encode_subscription,
)
from headrace.protocol.errors import WireError

# Version, topics [t, uu], user data, owned partitions t: [1, 2], generation 5, rack "r".
TOPICS = "00000002 0001 74 0002 7575"
GOLDEN = {
    0: f"0000 {TOPICS} ffffffff",
    1: f"0001 {TOPICS} 00000002 abcd 00000001 0001 74 00000002 00000001 00000002",
    2: f"0002 {TOPICS} ffffffff 00000000 00000005",
    3: f"0003 {TOPICS} ffffffff 00000001 0001 74 00000002 00000001 00000002 00000005 0001 72",
}
SUBSCRIPTIONS = {
    0: Subscription(("t", "uu"), version=0),
    1: Subscription(("t", "uu"), b"\xab\xcd", {"t": (1, 2)}, version=1),
    2: Subscription(("t", "uu"), generation_id=5, version=2),
    3: Subscription(("t", "uu"), None, {"t": (1, 2)}, 5, "r", version=3),
}
names = st.text("abc.-é", min_size=1, max_size=5)
partitions = st.dictionaries(names, st.lists(st.integers(0, 2**31 - 1), max_size=3).map(tuple))
user_data = st.none() | st.binary(max_size=4)


@pytest.mark.parametrize("version", GOLDEN)
def test_a_subscription_of_every_version_is_read_and_written(version: int) -> None:
    golden = bytes.fromhex(GOLDEN[version])
    assert decode_subscription(golden) == SUBSCRIPTIONS[version]
    assert encode_subscription(SUBSCRIPTIONS[version]) == golden
    assert decode_topics(golden) == {"t", "uu"}


def test_an_assignment_is_read_and_written() -> None:
    golden = bytes.fromhex("0001 00000001 0001 74 00000002 00000000 00000007 00000001 ff")
    assignment = MemberAssignment({"t": (0, 7)}, b"\xff", version=1)
    assert decode_assignment(golden) == assignment
    assert encode_assignment(assignment) == golden


def test_a_newer_version_is_read_as_the_newest_known() -> None:
    newer = bytes.fromhex(GOLDEN[3].replace("0003", "0009", 1)) + b"more"
    assert decode_subscription(newer) == SUBSCRIPTIONS[3]._replace(version=9)


def test_topics_are_known_even_where_the_rest_makes_no_sense() -> None:
    broken = bytes.fromhex(GOLDEN[1])[:-1]
    assert decode_topics(broken) == {"t", "uu"}
    with pytest.raises(WireError):
        decode_subscription(broken)


def test_partitions_of_a_topic_that_is_named_twice_add_up() -> None:
    twice = bytes.fromhex(
        "0000 00000002 0001 74 00000001 00000001 0001 74 00000001 00000004 ffffffff"
    )
    assert decode_assignment(twice).partitions == {"t": (1, 4)}


@given(
    st.builds(
        Subscription,
        topics=st.lists(names, max_size=3).map(tuple),
        user_data=user_data,
        owned_partitions=partitions,
        generation_id=st.integers(-1, 2**31 - 1),
        rack_id=st.none() | names,
        version=st.just(3),
    )
)
def test_a_subscription_survives_the_way_through_bytes(subscription: Subscription) -> None:
    assert decode_subscription(encode_subscription(subscription)) == subscription


@given(st.builds(MemberAssignment, partitions=partitions, user_data=user_data, version=st.just(3)))
def test_an_assignment_survives_the_way_through_bytes(assignment: MemberAssignment) -> None:
    assert decode_assignment(encode_assignment(assignment)) == assignment


@pytest.mark.parametrize("version", GOLDEN)
def test_a_subscription_that_is_cut_short_raises(version: int) -> None:
    whole = bytes.fromhex(GOLDEN[version])
    for end in range(len(whole)):
        with pytest.raises(WireError):
            decode_subscription(whole[:end])


@given(st.binary(max_size=40))
def test_other_bytes_raise_nothing_else(content: bytes) -> None:
    for decode in (decode_subscription, decode_assignment, decode_topics):
        with contextlib.suppress(WireError):
            decode(content)


@pytest.mark.parametrize(
    "content", ["ffff 00000000 ffffffff", "0000 00000001 ffff ffffffff", "0000 00000001 0001 ff"]
)
def test_a_negative_version_a_null_topic_and_bytes_that_are_no_text_raise(content: str) -> None:
    with pytest.raises(WireError):
        decode_subscription(bytes.fromhex(content))
