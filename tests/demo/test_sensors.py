import json
from collections import Counter
from datetime import UTC, datetime

import pytest

from demo.sensors import BAD_SHARE, RETIRES_EVERY, SensorFeed, SensorMessage

NOW = datetime(2026, 11, 16, 14, 30, tzinfo=UTC)
MESSAGES = 40_000


def is_good(value: bytes) -> bool:
    """What SCHEMA asks for, written down once more and without Spark."""
    try:
        reading = json.loads(value)
    except ValueError:
        return False
    if not isinstance(reading, dict):
        return False
    at, celsius = reading.get("at"), reading.get("celsius")
    return isinstance(reading.get("sensor"), str) and isinstance(at, str) and type(celsius) is float


@pytest.fixture(scope="module")
def feed() -> tuple[SensorFeed, list[SensorMessage]]:
    feed = SensorFeed()
    return feed, [feed.next(NOW) for _ in range(MESSAGES)]


def test_the_books_agree_with_a_reader_who_decodes_every_message(feed):
    sensors, messages = feed
    latest: dict[str, float] = {}
    bad = 0
    for message in messages:
        if message.value is None:
            latest.pop(message.key.decode(), None)
        elif is_good(message.value):
            reading = json.loads(message.value)
            assert reading["sensor"].encode() == message.key
            latest[reading["sensor"]] = reading["celsius"]
        else:
            bad += 1

    assert sensors.books.sent == MESSAGES
    assert sensors.books.latest == latest
    assert sensors.books.bad.total() == bad


def test_a_message_is_called_bad_exactly_when_it_is(feed):
    _, messages = feed

    for message in messages:
        assert (message.kind is None) == (message.value is None or is_good(message.value)), message


def test_every_kind_of_bad_message_comes_in_its_share(feed):
    _, messages = feed
    kinds = Counter(message.kind for message in messages if message.kind)

    assert set(kinds) == {"not JSON", "wrong type", "missing field", "cut in the middle"}
    assert kinds.total() == pytest.approx(MESSAGES * BAD_SHARE, rel=0.3)


def test_a_retired_sensor_sends_nothing_more(feed):
    sensors, messages = feed
    gone = set[bytes]()
    for message in messages:
        assert message.key not in gone
        if message.value is None:
            gone.add(message.key)

    assert len(gone) == sensors.books.retired == MESSAGES // RETIRES_EVERY


def test_the_same_seed_gives_the_same_feed():
    one, other = SensorFeed(7), SensorFeed(7)

    assert [one.next(NOW) for _ in range(500)] == [other.next(NOW) for _ in range(500)]
