"""A broker that was held up takes what lies in its sockets before it ends anybody's session."""

import time
from typing import Any

import pytest
from tests.interop.consumer_wire import Consumer
from tests.interop.group_wire import (
    CONSUMER_GROUP_HEARTBEAT,
    FIND_COORDINATOR,
    HEARTBEAT,
    LIST_GROUPS,
    NONE,
    Member,
    asked,
    wait_for,
)
from tests.interop.wire import WireClient

from headrace.broker.handlers import find_coordinator
from headrace.testing import running_broker

SESSION_MS = 4_000
STALL_SECONDS = 6.0
SETTINGS: dict[str, object] = {
    "group_min_session_timeout_ms": 1_000,
    "group_initial_rebalance_delay_ms": 0,
    "group_consumer_min_session_timeout_ms": 1_000,
    "group_consumer_session_timeout_ms": SESSION_MS,
    "group_consumer_min_heartbeat_interval_ms": 500,
    "group_consumer_heartbeat_interval_ms": 1_000,
}


def states(wire: WireClient) -> dict[str, str]:
    groups = wire.call(LIST_GROUPS, 4, states_filter=[]).groups
    return {group.group_id: group.group_state for group in groups}


def test_a_stall_expires_the_silent_and_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    to_stall: list[Any] = []
    answer = find_coordinator.handle

    def handle(*arguments: Any) -> Any:
        for stall in to_stall:
            stall()
        to_stall.clear()
        return answer(*arguments)

    monkeypatch.setattr(find_coordinator, "handle", handle)
    with running_broker(**SETTINGS) as broker:
        wires = [WireClient(broker.bootstrap) for _ in range(3)]
        wires[0].create_topic("t")
        members = [
            Member(broker.bootstrap, group, session_timeout=SESSION_MS)
            for group in ("classic, beating", "classic, silent")
        ]
        beating = Consumer(wires[1], "consumer, beating", "b" * 22, "t")
        silent = Consumer(wires[2], "consumer, silent", "s" * 22, "t")
        for member in members:
            member.enter()
            assert member.sync({member.member_id: b""}).error_code == NONE
        for consumer in (beating, silent):
            assert consumer.join().error_code == NONE

        def stall() -> None:
            """Inside a handler: four sessions run out, two heartbeats come."""
            members[0].send(HEARTBEAT, 4)
            wires[1].send(asked(CONSUMER_GROUP_HEARTBEAT, 1, **beating.fields({})))
            time.sleep(STALL_SECONDS)

        for member in members:
            assert member.heartbeat() == NONE
        to_stall.append(stall)
        wires[0].call(FIND_COORDINATOR, 3, key="g", key_type=0)

        assert members[0].receive().error_code == NONE
        assert wires[1].receive().error_code == NONE
        for group in ("classic, silent", "consumer, silent"):
            wait_for(lambda group=group: states(wires[0])[group] == "Empty")
        for client in (*members, *wires):
            client.__exit__()
