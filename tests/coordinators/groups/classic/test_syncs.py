"""How members come to their assignments."""

import pytest
from tests.coordinators.groups.classic.driver import REBALANCE_MS, SESSION_MS, Driver

from headrace.errors import (
    CoordinatorNotAvailableError,
    FencedInstanceError,
    IllegalGenerationError,
    InconsistentProtocolError,
    RebalanceInProgressError,
    UnknownMemberError,
)


def completing(driver: Driver) -> tuple[str, str]:
    """Two members that know of their generation and nothing else."""
    leader, follower = driver.stable(2)
    driver.join(leader)
    driver.join(follower)
    assert driver.group.state == "CompletingRebalance"
    return leader, follower


def test_followers_wait_for_the_leader() -> None:
    driver = Driver()
    leader, follower = completing(driver)
    waiting = driver.sync(follower)
    assert driver.is_parked(waiting)

    brought = driver.sync(leader, {"client-1": b"one", "client-2": b"two"})
    assert driver.sync_reply(brought).assignment == b"one"
    reply = driver.sync_reply(waiting)
    assert (reply.error, reply.assignment) == (None, b"two")
    assert (reply.protocol_type, reply.protocol_name) == ("consumer", "range")
    assert driver.group.state == "Stable"


def test_the_leader_s_assignment_is_written_before_anyone_is_told() -> None:
    driver = Driver()
    _, follower = completing(driver)
    driver.sync(follower)
    written = len(driver.records)
    driver.pass_time(500)
    completed_ms = driver.group.state_timestamp_ms
    driver.sync("client-1", {"client-1": b"one", "client-2": b"two"})

    assert len(driver.records) == written + 1
    record = driver.last_record()
    assert (record.generation_id, record.protocol_name, record.leader) == (3, "range", "client-1")
    assert {m.member_id: m.assignment for m in record.members} == {
        "client-1": b"one",
        "client-2": b"two",
    }
    # As in Kafka, the record carries the time of the state in which it is written.
    assert record.state_timestamp_ms == completed_ms < driver.group.state_timestamp_ms


def test_a_member_that_the_leader_forgot_has_an_empty_assignment() -> None:
    driver = Driver()
    leader, follower = completing(driver)
    driver.sync(leader, {"client-1": b"one", "client-9": b"nobody"})
    reply = driver.sync_reply(driver.sync(follower))
    assert (reply.error, reply.assignment) == (None, b"")


def test_in_a_stable_group_a_sync_is_answered_as_often_as_it_is_sent() -> None:
    driver = Driver()
    _, follower = driver.stable(2)
    written = len(driver.records)
    for _ in range(3):
        assert driver.sync_reply(driver.sync(follower)).assignment == b"2"
    assert len(driver.records) == written


def test_a_leader_that_syncs_again_changes_nothing() -> None:
    driver = Driver()
    leader, _ = driver.stable(2)
    assert driver.sync_reply(driver.sync(leader, {"client-1": b"new"})).assignment == b"1"


def test_a_sync_that_is_sent_twice_leaves_no_request_without_an_answer() -> None:
    driver = Driver()
    leader, follower = completing(driver)
    lost, kept = driver.sync(follower), driver.sync(follower)
    assert isinstance(driver.sync_reply(lost).error, RebalanceInProgressError)
    driver.sync(leader, {"client-2": b"two"})
    assert driver.sync_reply(kept).assignment == b"two"


@pytest.mark.parametrize("generation", [2, 4, -1])
def test_a_sync_of_another_generation_is_refused(generation: int) -> None:
    driver = Driver()
    _, follower = completing(driver)
    reply = driver.sync_reply(driver.sync(follower, generation=generation))
    assert isinstance(reply.error, IllegalGenerationError)


@pytest.mark.parametrize(
    ("protocol_type", "protocol_name"), [("connect", "range"), ("consumer", "sticky")]
)
def test_a_sync_with_another_protocol_is_refused(protocol_type: str, protocol_name: str) -> None:
    driver = Driver()
    _, follower = completing(driver)
    ticket = driver.sync(follower, protocol_type=protocol_type, protocol_name=protocol_name)
    assert isinstance(driver.sync_reply(ticket).error, InconsistentProtocolError)


def test_an_old_client_need_not_name_the_protocol() -> None:
    driver = Driver()
    leader, _ = completing(driver)
    ticket = driver.sync(leader, protocol_type=None, protocol_name=None)
    assert driver.sync_reply(ticket).error is None


def test_a_sync_while_everyone_joins_is_told_to_join() -> None:
    driver = Driver()
    leader, follower = driver.stable(2)
    driver.join(leader)
    reply = driver.sync_reply(driver.sync(follower))
    assert isinstance(reply.error, RebalanceInProgressError)


def test_a_sync_of_nobody_is_refused() -> None:
    driver = Driver()
    assert isinstance(driver.sync_reply(driver.sync("x")).error, UnknownMemberError)
    first, _ = driver.stable(2, instances=True)
    assert isinstance(driver.sync_reply(driver.sync("x")).error, UnknownMemberError)
    fenced = driver.sync(first, instance="i2")
    assert isinstance(driver.sync_reply(fenced).error, FencedInstanceError)
    driver.group.die(RebalanceInProgressError())
    assert isinstance(driver.sync_reply(driver.sync(first)).error, CoordinatorNotAvailableError)


def test_who_waits_for_the_leader_is_not_expected_to_send_heartbeats() -> None:
    driver = Driver()
    leader, follower = completing(driver)
    waiting = driver.sync(follower)
    for _ in range(4):
        driver.heartbeat(leader)
        driver.pass_time(SESSION_MS - 1)
    assert driver.is_parked(waiting)
    driver.heartbeat(leader)
    driver.sync(leader, {"client-2": b"two"})

    # With the answer, the session begins anew.
    driver.pass_time(SESSION_MS - 1)
    driver.heartbeat(follower)


def test_a_leader_that_never_syncs_is_out_and_its_followers_join_again() -> None:
    driver = Driver()
    leader, follower = completing(driver)
    waiting = driver.sync(follower)
    for _ in range(REBALANCE_MS // 5_000):
        assert driver.is_parked(waiting)
        driver.heartbeat(leader)
        driver.pass_time(5_000)
    assert isinstance(driver.sync_reply(waiting).error, RebalanceInProgressError)
    assert list(driver.group.members) == [follower]
    assert driver.joined(driver.join(follower)).leader == follower


def test_who_never_syncs_is_out_long_before_its_session_ends() -> None:
    driver = Driver()
    driver.join(version=3, session_ms=60_000, rebalance_ms=7_000)
    driver.pass_time(6_999)
    assert driver.group.state == "CompletingRebalance"
    driver.pass_time(1)
    assert driver.group.state == "Empty"


def test_a_follower_that_never_syncs_is_out_even_when_the_group_is_stable() -> None:
    driver = Driver()
    leader, follower = completing(driver)
    driver.sync(leader)
    for _ in range(REBALANCE_MS // 5_000):
        assert driver.group.state == "Stable"
        driver.heartbeat(leader)
        driver.heartbeat(follower)
        driver.pass_time(5_000)
    assert driver.group.state == "PreparingRebalance"
    assert list(driver.group.members) == [leader]


def test_when_all_have_synced_nobody_is_missed_later() -> None:
    driver = Driver()
    members = driver.stable(2)
    for _ in range(3 * REBALANCE_MS // 5_000):
        for member in members:
            driver.heartbeat(member)
        driver.pass_time(5_000)
    assert driver.group.state == "Stable"
