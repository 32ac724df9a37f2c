from typing import Any

import pytest
from kio.schema.errors import ErrorCode
from kio.schema.heartbeat.v4.request import HeartbeatRequest
from tests.broker.handlers.group_requests import HEARTBEAT, a_stable_member


@pytest.mark.parametrize("version", range(5))
def test_a_member_in_its_generation_is_well(ask: Any, version: int) -> None:
    joined = a_stable_member(ask)
    request = HeartbeatRequest(group_id="g", generation_id=1, member_id=joined.member_id)

    assert ask(HEARTBEAT, request, version).error_code == ErrorCode.none


@pytest.mark.parametrize(
    ("group_id", "member_id", "generation_id", "error_code"),
    [
        ("", "m", 1, ErrorCode.invalid_group_id),
        ("other", "m", 1, ErrorCode.unknown_member_id),
        ("g", "m", 1, ErrorCode.unknown_member_id),
        ("g", None, 2, ErrorCode.illegal_generation),
    ],
)
def test_a_stray_heartbeat_is_refused(
    ask: Any, group_id: str, member_id: str | None, generation_id: int, error_code: ErrorCode
) -> None:
    joined = a_stable_member(ask)
    request = HeartbeatRequest(
        group_id=group_id,
        generation_id=generation_id,
        member_id=member_id or joined.member_id,
    )

    assert ask(HEARTBEAT, request).error_code == error_code
