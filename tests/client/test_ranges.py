from collections.abc import Iterator

import pytest

from headrace.client.admin import Admin
from headrace.client.bus import Bus
from headrace.client.errors import BusError
from headrace.client.producer import Producer
from headrace.client.ranges import read_ranges
from headrace.patience import StoppedError
from headrace.testing import RunningBroker, running_broker

PATIENCE_S = 120.0


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    with running_broker(num_partitions=2, watched=True) as broker:
        yield broker


def fill(bus: Bus, topic: str, count: int) -> None:
    with Producer(bus) as producer:
        for number in range(2 * count):
            producer.send(topic, b"%d" % (number // 2), partition=number % 2)


def read(bus: Bus, ranges: dict[tuple[str, int], tuple[int, int]]) -> list[tuple[int, int]]:
    return sorted(
        (message.partition(), message.offset())
        for batch in read_ranges(bus, ranges, timeout_s=PATIENCE_S)
        for message in batch
    )


def test_only_what_is_in_the_ranges_is_read(broker: RunningBroker) -> None:
    fill(broker.bus, "some", 50)

    found = read(broker.bus, {("some", 0): (10, 12), ("some", 1): (48, 50)})

    assert found == [(0, 10), (0, 11), (1, 48), (1, 49)]


def test_an_empty_range_asks_nobody() -> None:
    assert list(read_ranges(Bus("127.0.0.1:1"), {("none", 0): (3, 3)}, timeout_s=1)) == []


def test_a_range_beyond_the_end_ends_where_the_log_does(broker: RunningBroker) -> None:
    fill(broker.bus, "short", 3)

    assert read(broker.bus, {("short", 0): (1, 1000)}) == [(0, 1), (0, 2)]


def test_where_the_log_begins_later_reading_begins_there(broker: RunningBroker) -> None:
    fill(broker.bus, "cut", 10)
    Admin(broker.bus, timeout_s=PATIENCE_S).delete_records({("cut", 1): 7})

    assert read(broker.bus, {("cut", 1): (0, 10)}) == [(1, 7), (1, 8), (1, 9)]


def test_a_stop_ends_it(broker: RunningBroker) -> None:
    fill(broker.bus, "stopped", 1)

    with pytest.raises(StoppedError):
        list(
            read_ranges(
                broker.bus, {("stopped", 0): (0, 1)}, timeout_s=PATIENCE_S, is_stopped=lambda: True
            )
        )


def test_a_bus_that_says_nothing_is_named_with_the_partition() -> None:
    ranges = {("away", 3): (0, 1)}

    with pytest.raises(BusError, match=r"nothing of partition 3 of away for 0\.3 s") as silence:
        list(read_ranges(Bus("127.0.0.1:1"), ranges, timeout_s=0.3))
    assert silence.value.is_timeout


def test_a_topic_that_is_not_there_is_told(broker: RunningBroker) -> None:
    fill(broker.bus, "two", 1)
    for place, sentence in {
        ("nowhere", 0): "there is no topic nowhere",
        ("two", 7): "topic two has no partition 7",
    }.items():
        with pytest.raises(BusError, match=sentence) as told:
            list(read_ranges(broker.bus, {place: (0, 1)}, timeout_s=PATIENCE_S))
        assert not told.value.is_timeout
