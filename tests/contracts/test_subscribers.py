"""Durable subscribers get what came while they were away; the others do not."""

from tests.contracts.bus import Bus, numbered, poll, values, wait_for_end


def test_a_durable_subscriber_gets_what_it_missed(bus: Bus, topic: str, group: str) -> None:
    bus.send(topic, numbered(5, "before-"))
    with bus.consumer(group) as subscriber:
        subscriber.subscribe([topic])
        poll(subscriber, 5)
        subscriber.commit(asynchronous=False)
    bus.send(topic, numbered(5, "away-"))

    with bus.consumer(group, auto_offset_reset="latest") as subscriber:
        subscriber.subscribe([topic])
        got = poll(subscriber, 5)

    assert values(got) == numbered(5, "away-")


def test_a_new_subscriber_may_start_with_the_oldest_message(
    bus: Bus, topic: str, group: str
) -> None:
    bus.send(topic, numbered(5))

    with bus.consumer(group, auto_offset_reset="earliest") as subscriber:
        subscriber.subscribe([topic])

        assert values(poll(subscriber, 5)) == numbered(5)


def test_a_subscriber_that_is_not_durable_gets_what_comes_while_it_is_there(
    bus: Bus, topic: str, group: str
) -> None:
    for round_number in range(2):
        bus.send(topic, numbered(5, f"away-{round_number}-"))
        with bus.consumer(
            group, auto_offset_reset="latest", enable_partition_eof=True
        ) as subscriber:
            subscriber.subscribe([topic])
            wait_for_end(subscriber)
            bus.send(topic, numbered(5, f"there-{round_number}-"))

            assert values(poll(subscriber, 5)) == numbered(5, f"there-{round_number}-")
