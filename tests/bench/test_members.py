from pathlib import Path

import pytest

from bench.clients import beating
from bench.errors import BenchError
from bench.members import write_members
from headrace.testing import running_broker


def test_members_are_joined_and_their_heartbeats_answered(tmp_path: Path) -> None:
    members = tmp_path / "members"
    with running_broker(watched=True) as broker:
        write_members(members, broker.port, groups=4, members=3)
        broker.requests.clear()
        with beating(broker.port, members, interval_ms=2000, seconds=3) as finish:
            load = finish()

        assert load.requests >= 4 * 3
        assert load.p99_us > 0
        assert len(broker.requests.of("Heartbeat")) >= load.requests


def test_a_member_that_is_not_one_ends_the_beating(tmp_path: Path) -> None:
    members = tmp_path / "members"
    with running_broker(watched=True) as broker:
        write_members(members, broker.port, groups=1, members=1)
        broker.faults.fail("Heartbeat", "UNKNOWN_MEMBER_ID")
        with (
            beating(broker.port, members, interval_ms=50, seconds=5) as finish,
            pytest.raises(BenchError, match="beat: a heartbeat was answered with error 25"),
        ):
            finish()
