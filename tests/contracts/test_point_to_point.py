"""Point to point: a message goes to one member of a group."""

import contextlib

import pytest
from confluent_kafka import ConsumerGroupState
from tests.contracts.bus import Bus, assigned, numbered, poll, poll_each, values, wait_for

PARTITIONS = 4


@pytest.fixture(params=["classic", "consumer"])
def protocol(request: pytest.FixtureRequest) -> str:
    """Kafka's two group protocols promise the same."""
    return str(request.param)


def test_each_message_goes_to_one_member_of_the_group(bus: Bus, group: str, protocol: str) -> None:
    topic = bus.new_topic(PARTITIONS)
    with contextlib.ExitStack() as stack:
        members = [
            stack.enter_context(bus.consumer(group, group_protocol=protocol)) for _ in range(3)
        ]
        for member in members:
            member.subscribe([topic])
        shares = assigned(members, 1, 1, 2)
        for partition in range(PARTITIONS):
            bus.send(topic, numbered(50, f"{partition}-"), partition=partition)

        got = poll_each(members, 50 * PARTITIONS)

    assert [len(messages) for messages in got] == [50 * len(share) for share in shares]
    expected = {value for number in range(PARTITIONS) for value in numbered(50, f"{number}-")}
    assert {value for messages in got for value in values(messages)} == expected


def test_a_member_without_a_partition_takes_over_when_another_leaves(
    bus: Bus, group: str, protocol: str
) -> None:
    topic = bus.new_topic(1)
    with (
        bus.consumer(group, group_protocol=protocol) as one,
        bus.consumer(group, group_protocol=protocol) as other,
    ):
        for member in (one, other):
            member.subscribe([topic])

        def are_both_in() -> bool:
            # The first alone would hold the partition, too, until the second has joined.
            for member in (one, other):
                assert member.poll(0.02) is None
            found = bus.done(bus.admin.describe_consumer_groups([group]))[0]
            return found.state == ConsumerGroupState.STABLE and len(found.members) == 2

        wait_for(are_both_in)
        shares = assigned([one, other], 0, 1)
        first, second = (one, other) if shares[0] else (other, one)
        bus.send(topic, [b"1"])
        assert values(poll(first, 1)) == [b"1"]
        first.commit(asynchronous=False)

        first.close()
        bus.send(topic, [b"2"])

        assert values(poll(second, 1)) == [b"2"]
