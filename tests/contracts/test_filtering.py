"""Filtering: a reader chooses topics by pattern, and messages by what it finds on them."""

import uuid

from tests.contracts.bus import Bus, numbered, poll, values, wait_for


def test_a_pattern_subscribes_to_the_topics_it_matches(bus: Bus, group: str) -> None:
    prefix = f"orders-{uuid.uuid4()}"
    for name in (f"{prefix}.eu", f"{prefix}.us", f"other-{prefix}.eu"):
        bus.new_topic(name=name)
        bus.send(name, [name])

    with bus.consumer(group) as member:
        member.subscribe([rf"^{prefix}\..."])
        got = values(poll(member, 2))
        places = {place.topic for place in member.assignment()}

    assert sorted(got) == [f"{prefix}.eu".encode(), f"{prefix}.us".encode()]
    assert places == {f"{prefix}.eu", f"{prefix}.us"}


def test_a_topic_made_later_is_picked_up_by_the_pattern(bus: Bus, group: str) -> None:
    prefix = f"orders-{uuid.uuid4()}"
    bus.send(bus.new_topic(name=f"{prefix}.old"), [b"old"])

    with bus.consumer(group, topic_metadata_refresh_interval_ms=100) as member:
        member.subscribe([f"^{prefix}.*"])
        assert values(poll(member, 1)) == [b"old"]
        member.commit(asynchronous=False)
        bus.send(bus.new_topic(name=f"{prefix}.new"), [b"new"])

        assert values(poll(member, 1)) == [b"new"]


def test_a_deleted_topic_is_dropped_by_the_pattern(bus: Bus, group: str) -> None:
    prefix = f"orders-{uuid.uuid4()}"
    names = [bus.new_topic(name=f"{prefix}.{word}") for word in ("stays", "goes")]

    with bus.consumer(group, topic_metadata_refresh_interval_ms=100) as member:
        member.subscribe([f"^{prefix}.*"])
        wait_for(lambda: member.poll(0.05) or len(member.assignment()) == 2)
        bus.delete_topic(names[1])
        wait_for(lambda: member.poll(0.05) or len(member.assignment()) == 1)
        bus.send(names[0], [b"still here"])

        assert values(poll(member, 1)) == [b"still here"]


def test_the_bus_matches_the_pattern_for_members_of_the_new_protocol(bus: Bus, group: str) -> None:
    prefix = f"orders-{uuid.uuid4()}"
    for name in (f"{prefix}.eu", f"other-{prefix}.eu"):
        bus.send(bus.new_topic(name=name), [name])

    with bus.consumer(group, group_protocol="consumer") as member:
        member.subscribe([f"^{prefix}.*"])

        assert values(poll(member, 1)) == [f"{prefix}.eu".encode()]
        assert {place.topic for place in member.assignment()} == {f"{prefix}.eu"}


def test_messages_are_chosen_by_header_and_by_key_without_their_values(
    bus: Bus, topic: str
) -> None:
    producer = bus.producer()
    for number, value in enumerate(numbered(30)):
        kind = ("order", "refund", "visit")[number % 3]
        key = f"customer-{number % 2}"
        producer.produce(topic, value, key=key, headers=[("kind", kind.encode())])
    assert producer.flush(120) == 0

    messages = bus.read(topic)

    refunds = [each for each in messages if ("kind", b"refund") in (each.headers() or [])]
    assert values(refunds) == numbered(30)[1::3]
    assert values(each for each in messages if each.key() == b"customer-1") == numbered(30)[1::2]
