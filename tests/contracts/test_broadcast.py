"""Broadcast: many groups read one topic, each at its own speed."""

import contextlib

from tests.contracts.bus import Bus, numbered, poll, poll_each, values

GROUPS = 10
MESSAGES = 400


def test_many_groups_get_every_message_in_order(bus: Bus, topic: str, group: str) -> None:
    bus.send(topic, numbered(MESSAGES))
    with contextlib.ExitStack() as stack:
        subscribers = [
            stack.enter_context(bus.consumer(f"{group}-{number}")) for number in range(GROUPS)
        ]
        for subscriber in subscribers:
            subscriber.subscribe([topic])

        got = poll_each(subscribers, GROUPS * MESSAGES)

    assert [values(messages) for messages in got] == [numbered(MESSAGES)] * GROUPS


def test_a_slow_group_holds_nobody_up_and_misses_nothing(bus: Bus, topic: str, group: str) -> None:
    with bus.consumer(f"{group}-slow") as slow, bus.consumer(f"{group}-fast") as fast:
        for subscriber in (slow, fast):
            subscriber.subscribe([topic])
        bus.send(topic, numbered(MESSAGES))
        slow_start = values(poll(slow, 1))
        assert values(poll(fast, MESSAGES)) == numbered(MESSAGES)

        bus.send(topic, numbered(MESSAGES, "more-"))
        assert values(poll(fast, MESSAGES)) == numbered(MESSAGES, "more-")
        slow_rest = values(poll(slow, 2 * MESSAGES - 1))

    assert slow_start + slow_rest == numbered(MESSAGES) + numbered(MESSAGES, "more-")
