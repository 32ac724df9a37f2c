"""How long a group's partitions stay unread when a member or the broker goes, and no longer.

The configured time-out is the measure: a member is missed one session time-out after its last
heartbeat, and the others hear of it with their next one. The figures are printed with `-s`.
"""

import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from tests.interop.groups.group import Group
from tests.interop.groups.kinds import KINDS
from tests.interop.groups.member_process import MemberProcess
from tests.interop.wire import Engine

from headrace.testing import BrokerProcess, broker_process

PARTITIONS = 4
SESSION_SECONDS = 3.0
HEARTBEAT_SECONDS = 0.5
# For a member to join, sync and fetch on a machine that does other things as well.
GRACE_SECONDS = 30.0
SETTINGS = {
    "group_min_session_timeout_ms": 1000,
    "group_consumer_min_session_timeout_ms": 1000,
    "group_consumer_session_timeout_ms": int(SESSION_SECONDS * 1000),
    "group_consumer_min_heartbeat_interval_ms": 100,
    "group_consumer_heartbeat_interval_ms": int(HEARTBEAT_SECONDS * 1000),
}
MEMBER = {
    "session_timeout_ms": int(SESSION_SECONDS * 1000),
    "heartbeat_interval_ms": int(HEARTBEAT_SECONDS * 1000),
}
PROTOCOLS = ["confluent-range", "confluent-consumer"]


@pytest.fixture
def start(tmp_path: Path, port: int) -> Iterator[Callable[[], BrokerProcess]]:
    """Start a broker that comes back on the same port with the same data."""
    contexts = []

    def start() -> BrokerProcess:
        context = broker_process(tmp_path, port=port, **SETTINGS)
        contexts.append(context)
        return context.__enter__()

    yield start
    for context in contexts:
        context.__exit__(None, None, None)


@pytest.fixture
def new_group(start: Callable[[], BrokerProcess]) -> Iterator[Callable[[], Group]]:
    """A group whose topic is being written to."""
    groups: list[Group] = []

    def make() -> Group:
        broker = start()
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        admin.create_topics([NewTopic("numbers", PARTITIONS)])["numbers"].result(120)
        group = Group(Engine("headrace", broker.bootstrap), "numbers", PARTITIONS, "mill")
        group.broker = broker  # type: ignore[attr-defined]
        groups.append(group)
        group.numbers.start()
        return group

    yield make
    for group in groups:
        group.close()
        group.numbers.stop()


def two_members(group: Group, kind: str) -> tuple[MemberProcess, MemberProcess]:
    """Two members that have both begun to read."""
    first, second = group.start_all([KINDS[kind]] * 2, **MEMBER)
    group.wait_settled(2)
    group.wait_for_progress(first, second)
    return first, second


def seconds_until_read(group: Group, heir: MemberProcess, partitions: set[int]) -> float:
    """How long it takes from now until `heir` has read from each of `partitions`."""
    begin = time.monotonic()
    seen = len(group.journal.processed)

    def are_read() -> bool:
        return partitions <= {
            one.partition for one in group.journal.processed[seen:] if one.member == heir.name
        }

    group.journal.wait_until(f"{heir.name} reads {partitions}", are_read)
    return time.monotonic() - begin


def assert_is_the_time_out(seconds: float, what: str) -> None:
    print(f"\n{what}: read again after {seconds:.2f} s; session time-out {SESSION_SECONDS:.0f} s")
    assert seconds >= SESSION_SECONDS - HEARTBEAT_SECONDS - 0.2
    assert seconds <= SESSION_SECONDS + HEARTBEAT_SECONDS + GRACE_SECONDS


@pytest.mark.slow
@pytest.mark.parametrize("kind", PROTOCOLS)
def test_a_killed_members_partitions_are_read_after_the_session_time_out(
    new_group: Callable[[], Group], kind: str
) -> None:
    group = new_group()
    victim, heir = two_members(group, kind)
    orphaned = victim.assignment

    victim.kill()

    assert_is_the_time_out(seconds_until_read(group, heir, orphaned), f"{kind}, killed")


@pytest.mark.slow
@pytest.mark.parametrize("kind", PROTOCOLS)
def test_a_member_stopped_for_longer_than_its_session_is_replaced_and_comes_back(
    new_group: Callable[[], Group], kind: str
) -> None:
    group = new_group()
    victim, heir = two_members(group, kind)
    orphaned = victim.assignment

    victim._process.send_signal(signal.SIGSTOP)
    seconds = seconds_until_read(group, heir, orphaned)
    victim._process.send_signal(signal.SIGCONT)

    assert_is_the_time_out(seconds, f"{kind}, stopped")
    group.wait_settled(2)
    group.wait_for_progress(victim, heir)


@pytest.mark.slow
@pytest.mark.parametrize("kind", PROTOCOLS)
def test_members_go_on_after_a_broker_restart_without_a_rebalance(
    new_group: Callable[[], Group], start: Callable[[], BrokerProcess], kind: str
) -> None:
    group = new_group()
    members = two_members(group, kind)
    before = [len(group.journal.of(one.name, "assigned", "revoked", "lost")) for one in members]

    group.broker.kill()  # type: ignore[attr-defined]
    start()
    begin = time.monotonic()
    group.wait_for_progress(*members)
    print(f"\n{kind}, broker killed: both read {time.monotonic() - begin:.2f} s after its start")
    group.wait_settled(2)

    after = [len(group.journal.of(one.name, "assigned", "revoked", "lost")) for one in members]
    assert after == before


@pytest.mark.slow
@pytest.mark.parametrize("kind", PROTOCOLS)
def test_a_member_that_dies_with_the_broker_is_missed_after_the_session_time_out(
    new_group: Callable[[], Group], start: Callable[[], BrokerProcess], kind: str
) -> None:
    group = new_group()
    victim, heir = two_members(group, kind)
    orphaned = victim.assignment

    group.broker.kill()  # type: ignore[attr-defined]
    victim.kill()
    start()

    # Its session begins anew when the group is loaded: with the first request after the start.
    assert_is_the_time_out(
        seconds_until_read(group, heir, orphaned), f"{kind}, killed with the broker"
    )
