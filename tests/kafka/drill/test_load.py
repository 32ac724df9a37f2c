"""Publishers, bulk and readers against a broker that is well, or is told to be difficult."""

import time
from collections.abc import Callable, Iterator

import pytest

from headrace.client.bus import Bus
from headrace.kafka.drill.election import Timeouts
from headrace.kafka.drill.ledger import Account, Reading, balance, compare
from headrace.kafka.drill.message import Stream, encode, make_streams
from headrace.kafka.drill.publisher import Publisher, publisher_config, write_bulk
from headrace.kafka.drill.readers import LiveConsumers, consumer_config, end_offsets, read_whole
from headrace.kafka.errors import DrillError
from headrace.testing import RunningBroker, running_broker

TIMEOUTS = Timeouts(9.0, 2.0, 1.0, 1.0)
TOPIC = "drill"
PARTITIONS = 3


@pytest.fixture
def broker() -> Iterator[RunningBroker]:
    with running_broker(watched=True, in_memory=True, num_partitions=PARTITIONS) as broker:
        yield broker


def publisher_on(
    broker: RunningBroker,
    accounts: list[Account],
    *,
    on_failure: Callable[[str], None] = lambda _: None,
    **config: object,
) -> Publisher:
    return Publisher(
        Bus(broker.bootstrap),
        {**publisher_config(TIMEOUTS), **config},
        TOPIC,
        accounts,
        rate=1000,
        message_bytes=60,
        now_s=time.monotonic,
        on_failure=on_failure,
    )


def await_(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 180
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def final_reading(broker: RunningBroker, streams: list[Stream]) -> Reading:
    bus = Bus(broker.bootstrap)
    return read_whole(
        bus,
        TIMEOUTS,
        TOPIC,
        streams,
        end_offsets(bus, TOPIC, PARTITIONS),
        timeout_s=120,
        on_progress=lambda taken, total: None,
    )


def test_what_publishers_sent_is_acknowledged_stored_and_read_along(broker: RunningBroker) -> None:
    streams = make_streams(2, PARTITIONS)
    accounts = [Account(stream) for stream in streams]
    publishers = [
        publisher_on(broker, accounts[:PARTITIONS]),
        publisher_on(broker, accounts[PARTITIONS:]),
    ]
    bus = Bus(broker.bootstrap)
    live = LiveConsumers(bus, consumer_config(TIMEOUTS, "live"), TOPIC, streams, 2)

    for publisher in publishers:
        publisher.start()
    live.start()
    await_(lambda: all(publisher.acknowledged >= 100 for publisher in publishers))
    assert all(publisher.finish(120) for publisher in publishers)
    live.drain(end_offsets(bus, TOPIC, PARTITIONS), 180, lambda: None)
    live.stop(120)

    final = final_reading(broker, streams)
    found = balance(accounts, final)
    assert found.sent == found.acknowledged == found.stored >= 200
    assert (found.lost, found.duplicated, found.reordered, found.stray) == (0, 0, 0, 0)
    alongside = compare(live.reading, final, read_again=live.read_again)
    assert (alongside.read, alongside.missed, alongside.vanished) == (found.stored, 0, 0)
    assert sum(publishers[0].acks.counts) == publishers[0].acknowledged


def test_a_message_that_fails_is_booked_as_failed_and_told(broker: RunningBroker) -> None:
    accounts = [Account(stream) for stream in make_streams(1, PARTITIONS)]
    told = list[str]()
    warm_up = publisher_on(broker, accounts)
    warm_up.start()
    await_(lambda: warm_up.acknowledged > 0)
    assert warm_up.finish(120)
    broker.faults.fail("Produce", "INVALID_RECORD", times=1)

    publisher = publisher_on(
        broker, accounts, on_failure=told.append, **{"enable.idempotence": False}
    )
    publisher.start()
    await_(lambda: publisher.failed > 0 and publisher.acknowledged > 0)
    assert publisher.finish(120)

    found = balance(accounts, final_reading(broker, [each.stream for each in accounts]))
    assert found.failed == publisher.failed == len(told)
    assert found.waiting == 0
    assert found.lost == 0


def test_bulk_is_acknowledged_and_stored_in_order(broker: RunningBroker) -> None:
    streams = make_streams(1, PARTITIONS)
    accounts = [Account(stream) for stream in streams]
    progress = list[int]()

    write_bulk(
        Bus(broker.bootstrap),
        publisher_config(TIMEOUTS),
        TOPIC,
        accounts,
        messages=20_000,
        message_bytes=60,
        on_progress=progress.append,
    )

    found = balance(accounts, final_reading(broker, streams))
    assert found.acknowledged == found.stored == 20_000
    assert (found.lost, found.duplicated, found.reordered, found.stray) == (0, 0, 0, 0)
    assert progress[-1] <= 20_000


def test_bulk_ends_when_it_is_interrupted(broker: RunningBroker) -> None:
    accounts = [Account(stream) for stream in make_streams(1, PARTITIONS)]

    def interrupt(sent: int) -> None:
        if sent:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_bulk(
            Bus(broker.bootstrap),
            publisher_config(TIMEOUTS),
            TOPIC,
            accounts,
            messages=10_000_000,
            message_bytes=60,
            on_progress=interrupt,
        )


def test_a_record_that_comes_again_by_its_offset_is_no_duplicate() -> None:
    streams = make_streams(1, 1)
    live = LiveConsumers(Bus(), {}, TOPIC, streams, 0)
    for offset, sequence in ((0, 0), (1, 1), (1, 1), (2, 1)):
        live.take(0, offset, encode(0, sequence, b""))

    # Offset 1 came twice, after a rebalance; offset 2 holds what offset 1 holds.
    assert live.read_again == 1
    assert live.reading.duplicated == 1


def test_a_topic_that_is_shorter_than_it_said_is_an_error(broker: RunningBroker) -> None:
    streams = make_streams(1, PARTITIONS)
    accounts = [Account(stream) for stream in streams]
    write_bulk(
        Bus(broker.bootstrap),
        publisher_config(TIMEOUTS),
        TOPIC,
        accounts,
        messages=30,
        message_bytes=60,
        on_progress=lambda sent: None,
    )

    with pytest.raises(DrillError, match="ended after 30 of 1,020 records"):
        read_whole(
            Bus(broker.bootstrap),
            TIMEOUTS,
            TOPIC,
            streams,
            {0: 10, 1: 10, 2: 1000},
            timeout_s=5,
            on_progress=lambda taken, total: None,
        )
