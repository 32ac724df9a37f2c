from typing import Any

import pytest
from kio.schema.errors import ErrorCode
from tests.broker.handlers.group_requests import (
    HAS_T,
    JOIN,
    SYNC,
    a_join,
    a_stable_member,
    a_sync,
)


@pytest.mark.parametrize("version", range(6))
def test_the_leaders_assignment_comes_back(ask: Any, version: int) -> None:
    joined = ask(JOIN, a_join(), 3)

    synced = ask(SYNC, a_sync(joined), version)

    assert (synced.error_code, synced.assignment) == (ErrorCode.none, HAS_T)
    if version >= 5:
        assert (synced.protocol_type, synced.protocol_name) == ("consumer", "range")


def test_a_follower_waits_for_the_leader(ask: Any, ask_all: Any) -> None:
    first = a_stable_member(ask)
    joined = ask_all((JOIN, a_join(), 3), (JOIN, a_join(member_id=first.member_id), 3))
    follower, leader = sorted(joined, key=lambda one: len(one.members))

    synced = ask_all((SYNC, a_sync(follower), 5), (SYNC, a_sync(leader), 5))

    assert [one.assignment for one in synced] == [HAS_T, HAS_T]


@pytest.mark.parametrize(
    ("changes", "error_code"),
    [
        ({"group_id": ""}, ErrorCode.invalid_group_id),
        ({"group_id": "other"}, ErrorCode.unknown_member_id),
        ({"member_id": "nobody"}, ErrorCode.unknown_member_id),
        ({"generation_id": 7}, ErrorCode.illegal_generation),
        ({"protocol_name": "other"}, ErrorCode.inconsistent_group_protocol),
        ({"protocol_name": None}, ErrorCode.inconsistent_group_protocol),
    ],
)
def test_a_stray_sync_is_refused(ask: Any, changes: Any, error_code: ErrorCode) -> None:
    joined = ask(JOIN, a_join(), 3)

    synced = ask(SYNC, a_sync(joined, **changes))

    assert (synced.error_code, synced.assignment) == (error_code, b"")
