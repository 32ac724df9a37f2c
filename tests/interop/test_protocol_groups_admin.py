"""ListGroups, DescribeGroups and DeleteGroups, on both engines."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.interop.group_wire import (
    DELETE_GROUPS,
    DESCRIBE_GROUPS,
    GROUP_ID_NOT_FOUND,
    LIST_GROUPS,
    NON_EMPTY_GROUP,
    NONE,
    OFFSET_FETCH,
    UNKNOWN_MEMBER,
    WISHES,
    Member,
    ask,
    form,
    settle,
    state_of,
    versions_of,
    wait_for,
)
from tests.interop.wire import WireClient

NewMember = Callable[..., Member]
UNSUPPORTED = -(2**31)


def listed(wire: WireClient, group_id: str, version: int = 5, **filters: Any) -> Any:
    """What ListGroups says of one group; None when it does not name it."""
    answer = ask(wire, LIST_GROUPS, version, **{"states_filter": [], "types_filter": [], **filters})
    assert answer.error_code == NONE
    return next((group for group in answer.groups if group.group_id == group_id), None)


@pytest.mark.parametrize("version", versions_of(LIST_GROUPS))
def test_a_group_with_members_is_listed_in_every_version(
    wire: WireClient, new_member: NewMember, group_id: str, version: int
) -> None:
    settle([new_member()])

    group = listed(wire, group_id, version)

    assert group.protocol_type == "consumer"
    if version >= 4:
        assert group.group_state == "Stable"
    if version >= 5:
        assert group.group_type == "classic"


def test_a_group_that_only_keeps_offsets_is_listed_too(
    wire: WireClient, new_member: NewMember, topic: str, group_id: str
) -> None:
    assert listed(wire, group_id) is None
    new_member().commit(topic, 1)

    group = listed(wire, group_id)

    told = (group.protocol_type, group.group_state, group.group_type)
    assert told == ("", "Empty", "classic")


def test_groups_are_listed_by_state_and_type_in_any_case(
    wire: WireClient, new_member: NewMember, group_id: str
) -> None:
    form([new_member()])

    def is_listed(states: list[str], types: list[str]) -> bool:
        return listed(wire, group_id, states_filter=states, types_filter=types) is not None

    assert is_listed(["CompletingRebalance"], [])
    assert is_listed(["completingrebalance", "Empty"], [])
    assert is_listed([], ["Classic"])
    assert is_listed(["CompletingRebalance"], ["CLASSIC", "consumer"])
    assert not is_listed(["Stable"], [])
    assert not is_listed([], ["consumer"])
    assert not is_listed(["no such state"], [])
    assert not is_listed([], ["no such type"])


def described(wire: WireClient, group_id: str, version: int = 6, **options: Any) -> Any:
    fields = {"groups": [group_id], "include_authorized_operations": False, **options}
    return ask(wire, DESCRIBE_GROUPS, version, **fields).groups[0]


@pytest.mark.parametrize("version", versions_of(DESCRIBE_GROUPS))
def test_a_stable_group_is_described_in_every_version(
    wire: WireClient, new_member: NewMember, group_id: str, version: int
) -> None:
    leader, static = new_member(), new_member(instance_id="mine")
    settle([leader, static])

    group = described(wire, group_id, version)

    assert (group.error_code, group.group_id, group.group_state) == (NONE, group_id, "Stable")
    assert (group.protocol_type, group.protocol_data) == ("consumer", "range")
    members = {member.member_id: member for member in group.members}
    assert set(members) == {leader.member_id, static.member_id}
    told = members[static.member_id]
    assert (told.client_id, told.client_host) == ("interop", "/127.0.0.1")
    assert (told.member_metadata, told.member_assignment) == (WISHES, b"share of 1")
    if version >= 4:
        assert told.group_instance_id == "mine"
        assert members[leader.member_id].group_instance_id is None
    if version >= 3:
        assert group.authorized_operations == UNSUPPORTED
    if version >= 6:
        assert group.error_message is None


def test_before_it_is_stable_a_group_shows_no_protocol(
    wire: WireClient, new_member: NewMember, group_id: str
) -> None:
    member = new_member()
    form([member])

    group = described(wire, group_id)

    assert (group.group_state, group.protocol_type) == ("CompletingRebalance", "consumer")
    assert group.protocol_data == ""
    (told,) = group.members
    assert (told.member_metadata, told.member_assignment) == (b"", b"")


def test_an_empty_group_remembers_what_kind_it_was(
    wire: WireClient, new_member: NewMember, group_id: str
) -> None:
    member = new_member()
    settle([member])
    member.leave()

    group = described(wire, group_id)

    told = (group.group_state, group.protocol_type, group.protocol_data, group.members)
    assert told == ("Empty", "consumer", "", ())


@pytest.mark.parametrize("version", versions_of(DESCRIBE_GROUPS))
def test_a_group_that_is_not_there_is_dead(wire: WireClient, group_id: str, version: int) -> None:
    group = described(wire, group_id, version)

    assert (group.group_id, group.group_state, group.members) == (group_id, "Dead", ())
    assert (group.protocol_type, group.protocol_data) == ("", "")
    assert group.error_code == (GROUP_ID_NOT_FOUND if version >= 6 else NONE)
    if version >= 6:
        assert group.error_message == f"Group {group_id} not found."


def test_what_one_may_do_with_a_group_is_told_when_asked(
    wire: WireClient, new_member: NewMember, group_id: str
) -> None:
    settle([new_member()])

    group = described(wire, group_id, include_authorized_operations=True)
    gone = described(wire, "no-such-group", include_authorized_operations=True)

    # READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS: a bit each.
    assert group.authorized_operations == 3400
    assert gone.authorized_operations == UNSUPPORTED


def test_several_groups_are_described_in_one_request(
    wire: WireClient, new_member: NewMember, group_id: str
) -> None:
    settle([new_member()])

    answer = ask(
        wire,
        DESCRIBE_GROUPS,
        6,
        groups=["no-such-group", group_id],
        include_authorized_operations=False,
    )

    told = {group.group_id: (group.group_state, int(group.error_code)) for group in answer.groups}
    assert told == {
        "no-such-group": ("Dead", GROUP_ID_NOT_FOUND),
        group_id: ("Stable", NONE),
    }


def delete(wire: WireClient, *group_ids: str, version: int = 2) -> list[tuple[str, int]]:
    answer = ask(wire, DELETE_GROUPS, version, groups_names=list(group_ids))
    return sorted((result.group_id, int(result.error_code)) for result in answer.results)


@pytest.mark.parametrize("version", versions_of(DELETE_GROUPS))
def test_an_empty_group_goes_with_its_offsets(
    wire: WireClient, new_member: NewMember, topic: str, group_id: str, version: int
) -> None:
    member = new_member()
    settle([member])
    assert member.commit(topic, 5) == NONE
    member.leave()

    assert delete(wire, group_id, version=version) == [(group_id, NONE)]

    assert state_of(wire, group_id) == "Dead"
    assert listed(wire, group_id) is None
    groups = [{"group_id": group_id, "topics": None}]
    assert ask(wire, OFFSET_FETCH, 9, groups=groups).groups[0].topics == ()
    assert delete(wire, group_id, version=version) == [(group_id, GROUP_ID_NOT_FOUND)]


def test_a_group_with_members_stays(wire: WireClient, new_member: NewMember, group_id: str) -> None:
    member = new_member()
    settle([member])

    assert delete(wire, group_id) == [(group_id, NON_EMPTY_GROUP)]
    assert member.heartbeat() == NONE


def test_several_groups_are_deleted_in_one_request(
    wire: WireClient, new_member: NewMember, topic: str, group_id: str
) -> None:
    new_member().commit(topic, 5)

    told = delete(wire, group_id, "no-such-group")

    assert told == [(group_id, NONE), ("no-such-group", GROUP_ID_NOT_FOUND)]


def test_a_group_without_a_name_is_described_and_deleted_as_any_other(
    wire: WireClient, new_member: NewMember, topic: str, group_id: str
) -> None:
    nameless = new_member()
    wait_for(lambda: nameless.commit(topic, 1, group_id="") == NONE)

    assert state_of(wire, "") == "Empty"
    assert delete(wire, "") == [("", NONE)]
    assert delete(wire, "") == [("", GROUP_ID_NOT_FOUND)]
    assert state_of(wire, "") == "Dead"


def test_a_deleted_group_starts_at_generation_1_again(
    wire: WireClient, new_member: NewMember, group_id: str
) -> None:
    member, newcomer = new_member(), new_member()
    settle([member])
    member.leave()
    delete(wire, group_id)

    assert member.heartbeat() == UNKNOWN_MEMBER
    assert newcomer.enter().generation_id == 1
