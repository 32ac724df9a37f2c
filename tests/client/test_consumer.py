import asyncio
import signal
import socket
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from headrace.client.admin import Admin
from headrace.client.asynchronous import AsyncConsumer
from headrace.client.bus import Bus
from headrace.client.consumer import Consumer
from headrace.client.errors import BusError
from headrace.client.message import Message
from headrace.client.positions import OLDEST
from headrace.client.producer import Producer
from headrace.errors import ConfigError
from headrace.testing import RunningBroker, running_broker

PATIENCE_S = 120.0


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    # Rebalances wait for heartbeats: they come often here.
    with running_broker(
        group_initial_rebalance_delay_ms=0,
        group_consumer_min_heartbeat_interval_ms=100,
        group_consumer_heartbeat_interval_ms=100,
    ) as broker:
        yield broker


def fill(bus: Bus, topic: str, count: int, partitions: int = 1, first_ms: int = 1_000) -> None:
    Admin(bus, timeout_s=PATIENCE_S).ensure_topic(topic, partitions)
    with Producer(bus) as producer:
        for number in range(count):
            producer.send(
                topic,
                str(number),
                partition=number % partitions,
                timestamp_ms=first_ms + number,
            )


def take(consumer: Consumer, count: int) -> list[int]:
    found = list[Message]()
    while len(found) < count:
        found += consumer.poll(PATIENCE_S, max_messages=count - len(found))
    return [int(each.text) for each in found]


def reader(bus: Bus, topics: str | list[str], **more: Any) -> Consumer:
    return Consumer(bus, topics, timeout_s=PATIENCE_S, **more)


@pytest.mark.parametrize(
    ("start", "first"),
    [
        ("oldest", 0),
        (7, 7),
        ("@1005", 5),
        (datetime.fromtimestamp(1.009, UTC), 9),
        (timedelta(days=365 * 100), None),
        (OLDEST, 0),
    ],
)
def test_a_reader_without_a_group_begins_where_it_is_told(
    broker: RunningBroker, start: Any, first: int | None
) -> None:
    topic = "started"
    if topic not in Admin(broker.bus, timeout_s=PATIENCE_S).metadata().topics:
        fill(broker.bus, topic, 10)

    if first is None:
        with pytest.raises(ConfigError, match="the years 1970 to 9999"):
            reader(broker.bus, topic, start=start)
        return
    with reader(broker.bus, topic, start=start) as consumer:
        assert take(consumer, 10 - first) == [*range(first, 10)]
        assert consumer.poll(0) == []
        assert consumer.assignment() == [(topic, 0)]
        assert consumer.position(topic, 0) == 10


def test_the_latest_begins_with_what_comes(broker: RunningBroker) -> None:
    fill(broker.bus, "late", 3)
    with reader(broker.bus, "late", start="latest") as consumer:
        assert consumer.poll(0) == []
        assert consumer.position("late", 0) == 3
        fill(broker.bus, "late", 1)
        assert take(consumer, 1) == [0]
        assert consumer.position("late", 0) == 4


def test_a_shift_and_no_topic_are_refused() -> None:
    with pytest.raises(ConfigError, match="a shift counts from a committed offset"):
        Consumer(Bus(), "any", start="-10")
    for topics in ("", [], ["a", ""]):
        with pytest.raises(ConfigError, match="name at least one topic"):
            Consumer(Bus(), topics)


def test_a_group_goes_on_after_what_was_done_and_repeats_what_was_not(
    broker: RunningBroker,
) -> None:
    fill(broker.bus, "grouped", 30)
    with reader(broker.bus, "grouped", group="steady") as consumer:
        assert take(consumer, 10) == [*range(10)]
        assert consumer.poll(PATIENCE_S, max_messages=5)[0].text == "10"  # never known to be done
    with reader(broker.bus, "grouped", group="steady") as consumer:
        assert take(consumer, 5) == [*range(10, 15)]
        consumer.commit()
        assert consumer.committed() == {("grouped", 0): 15}
    with reader(broker.bus, "grouped", group="steady") as consumer:
        assert take(consumer, 15) == [*range(15, 30)]
        assert consumer.lag() == {("grouped", 0): 0}
        assert consumer.poll(0) == []
    assert Admin(broker.bus, timeout_s=PATIENCE_S).group_offsets("steady") == {("grouped", 0): 30}


def test_iterating_proves_each_message_done_but_the_last(broker: RunningBroker) -> None:
    fill(broker.bus, "iterated", 10)
    with reader(broker.bus, "iterated", group="walkers") as consumer:
        for message in consumer:
            if message.offset == 6:
                break
    with reader(broker.bus, "iterated", group="walkers") as consumer:
        assert take(consumer, 4) == [6, 7, 8, 9]


def test_without_a_group_nothing_is_committed(broker: RunningBroker) -> None:
    fill(broker.bus, "alone", 1)
    with reader(broker.bus, "alone") as consumer:
        take(consumer, 1)
        with pytest.raises(RuntimeError, match="only a consumer with a group commits"):
            consumer.commit()


@pytest.mark.parametrize(
    "config",
    [
        {"heartbeat.interval.ms": 100},
        {"group.protocol": "consumer"},
        {"partition.assignment.strategy": "cooperative-sticky", "heartbeat.interval.ms": 100},
    ],
    ids=["classic", "kip-848", "cooperative"],
)
def test_members_that_come_and_go_lose_nothing(
    broker: RunningBroker, config: dict[str, object]
) -> None:
    topic = "-".join(["moving", *map(str, config.values())])
    fill(broker.bus, topic, 2000, partitions=4)
    seen = set[int]()

    def read(consumer: Consumer, until: int) -> None:
        while len(seen) < until:
            seen.update(int(each.text) for each in consumer.poll(0.2, max_messages=50))

    with reader(broker.bus, topic, group=topic, config=config) as first:
        read(first, 300)
        with reader(broker.bus, topic, group=topic, config=config) as second:
            deadline = time.monotonic() + PATIENCE_S
            while len(second.assignment()) != 2 and time.monotonic() < deadline:
                for each in (first, second):
                    seen.update(int(found.text) for found in each.poll(0.1, max_messages=20))
            assert len(first.assignment()) == len(second.assignment()) == 2
        read(first, 2000)

    assert seen == {*range(2000)}


def test_a_reader_seeks_and_tells_its_lag(broker: RunningBroker) -> None:
    fill(broker.bus, "sought", 20)
    with reader(broker.bus, "sought") as consumer:
        assert take(consumer, 5) == [*range(5)]
        assert consumer.position("sought", 0) == 5
        assert consumer.lag() == {("sought", 0): 15}
        consumer.seek("sought", 0, 17)
        assert take(consumer, 3) == [17, 18, 19]
        consumer.seek("sought", 0, "oldest")
        assert take(consumer, 2) == [0, 1]
        consumer.seek("sought", 0, "@1010")
        assert take(consumer, 1) == [10]
        with pytest.raises(BusError, match=r"partition 3 of sought is not read .*sought:0"):
            consumer.seek("sought", 3, 0)


def test_what_retention_took_is_told_with_the_way_out(broker: RunningBroker) -> None:
    fill(broker.bus, "cut", 20)
    with reader(broker.bus, "cut", group="cutters") as consumer:
        take(consumer, 5)
        consumer.commit()
    Admin(broker.bus, timeout_s=PATIENCE_S).delete_records({("cut", 0): 12})

    with reader(broker.bus, "cut", group="cutters") as consumer:
        with pytest.raises(BusError, match=r"auto\.offset\.reset=earliest"):
            consumer.poll(PATIENCE_S)
        consumer.seek("cut", 0, "oldest")
        assert take(consumer, 8) == [*range(12, 20)]
    lenient = Bus(broker.bootstrap, {"auto.offset.reset": "earliest"})
    with reader(lenient, "cut", group="cutters-2", start=3) as consumer:
        assert take(consumer, 8) == [*range(12, 20)]


def test_each_partition_that_retention_cut_is_told_of(broker: RunningBroker) -> None:
    fill(broker.bus, "both-cut", 20, partitions=2)
    admin = Admin(broker.bus, timeout_s=PATIENCE_S)
    admin.delete_records({("both-cut", 0): 5, ("both-cut", 1): 5})
    told = set[str]()

    with reader(broker.bus, "both-cut", start=1) as consumer:
        while len(told) < 2:
            with pytest.raises(BusError, match="has no offset 1 any more") as gone:
                consumer.poll(PATIENCE_S)
            told.add(str(gone.value)[:11])
        assert told == {"partition 0", "partition 1"}
        for partition in (0, 1):
            consumer.seek("both-cut", partition, "oldest")
        assert sorted(take(consumer, 10)) == [*range(10, 20)]


def test_the_group_is_the_callers_whatever_a_file_for_another_program_says(
    broker: RunningBroker,
) -> None:
    theirs = {"group.id": "theirs", "enable.auto.offset.store": "true"}
    fill(broker.bus, "filed", 3)
    with reader(Bus(broker.bootstrap, theirs), "filed", group="ours") as consumer:
        take(consumer, 2)
        assert consumer.poll(PATIENCE_S, max_messages=1)[0].text == "2"  # never known to be done

    admin = Admin(broker.bus, timeout_s=PATIENCE_S)
    assert admin.group_offsets("ours") == {("filed", 0): 2}


def test_a_pattern_takes_a_group_and_a_group_a_name() -> None:
    with pytest.raises(ConfigError, match="a pattern takes a group"):
        Consumer(Bus(), "^orders")
    with pytest.raises(ConfigError, match="leave it out to read alone"):
        Consumer(Bus(), "orders", group="")


def test_a_closed_consumer_commits_nothing_in_silence(broker: RunningBroker) -> None:
    fill(broker.bus, "shut", 1)
    consumer = reader(broker.bus, "shut", group="shutters")
    take(consumer, 1)
    consumer.close()
    consumer.close()

    for ask in (consumer.commit, consumer.committed, consumer.lag, consumer.poll):
        with pytest.raises(RuntimeError, match="the consumer is closed"):
            ask()
    assert list(consumer) == []


def test_a_topic_that_is_not_there_is_named(broker: RunningBroker) -> None:
    for group in (None, "hopeful"):
        with (
            reader(broker.bus, "nowhere", group=group) as consumer,
            pytest.raises(BusError, match="there is no topic nowhere"),
        ):
            consumer.poll(PATIENCE_S)


def test_a_pattern_reads_all_topics_it_matches(broker: RunningBroker) -> None:
    fill(broker.bus, "many-a", 2)
    fill(broker.bus, "many-b", 2)
    with reader(broker.bus, "^many-.*", group="matching") as consumer:
        assert sorted(take(consumer, 4)) == [0, 0, 1, 1]


def test_nobody_at_the_address_is_told() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    with (
        Consumer(Bus(address), "any", timeout_s=0.5) as consumer,
        pytest.raises(BusError, match=f"{address}"),
    ):
        consumer.poll(1)


def test_a_poll_that_waits_is_interrupted_from_another_thread(broker: RunningBroker) -> None:
    fill(broker.bus, "quiet", 3)
    with reader(broker.bus, "quiet", group="sleepers") as consumer:
        seen = list[str]()
        for message in consumer:
            seen.append(message.text)
            if len(seen) == 3:
                threading.Timer(0.2, consumer.interrupt).start()
        assert seen == ["0", "1", "2"]
        consumer.interrupt()
        assert consumer.poll() == []
    with reader(broker.bus, "quiet", group="sleepers") as consumer:
        assert consumer.poll(0.5) == []  # all three were done
    with pytest.raises(RuntimeError, match="closed"):
        consumer.poll(0)


def test_ctrl_c_ends_a_poll_that_waits_and_loses_nothing(broker: RunningBroker) -> None:
    fill(broker.bus, "pressed", 3)
    with reader(broker.bus, "pressed") as consumer:
        assert take(consumer, 3) == [0, 1, 2]
        timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
        previous = signal.signal(signal.SIGINT, signal.default_int_handler)
        timer.start()
        try:
            with pytest.raises(KeyboardInterrupt):
                consumer.poll()
        finally:
            signal.signal(signal.SIGINT, previous)
        fill(broker.bus, "pressed", 2)
        assert take(consumer, 2) == [0, 1]


def test_a_consumer_in_an_event_loop_gives_what_a_cancelled_poll_had_found(
    broker: RunningBroker,
) -> None:
    fill(broker.bus, "looped", 50)

    async def main() -> list[int]:
        seen = list[int]()
        async with AsyncConsumer(
            broker.bus, "looped", group="loopers", timeout_s=PATIENCE_S
        ) as consumer:
            while len(seen) < 20:
                try:
                    async with asyncio.timeout(0.003):
                        seen += [int(each.text) for each in await consumer.poll(max_messages=3)]
                except TimeoutError:
                    pass
            async for message in consumer:
                seen.append(int(message.text))
                if len(seen) == 50:
                    break
            assert await consumer.lag() == {("looped", 0): 0}
            assert await consumer.position("looped", 0) == 50
            await consumer.commit()
            assert await consumer.committed() == {("looped", 0): 50}
            await consumer.seek("looped", 0, 49)
            (last,) = await consumer.poll(PATIENCE_S)
            assert last.text == "49"
            asyncio.get_running_loop().call_later(0.1, consumer.interrupt)
            assert await consumer.poll() == []
        return seen

    assert asyncio.run(main()) == [*range(50)]


def test_two_tasks_do_not_share_a_consumer_and_closing_ends_a_poll(broker: RunningBroker) -> None:
    fill(broker.bus, "tasks", 2)

    async def main() -> list[int]:
        consumer = AsyncConsumer(broker.bus, "tasks", timeout_s=PATIENCE_S)
        seen = list[int]()
        both = asyncio.Event()

        async def read() -> None:
            async for message in consumer:
                seen.append(int(message.text))
                if len(seen) == 2:
                    both.set()

        reading = asyncio.create_task(read())
        await both.wait()
        with pytest.raises(RuntimeError, match="another task is polling"):
            await consumer.poll()
        await consumer.close()
        await consumer.close()
        await reading
        with pytest.raises(RuntimeError, match="the consumer is closed"):
            await consumer.poll()
        return seen

    assert asyncio.run(main()) == [0, 1]


def test_ctrl_c_while_partitions_come_leaves_a_consumer_that_reads(
    broker: RunningBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(broker.bus, "pressed-early", 3)
    ask = Consumer._committed
    presses = iter([KeyboardInterrupt])

    def committed(consumer: Consumer, places: Any) -> Any:
        for press in presses:
            raise press
        return ask(consumer, places)

    monkeypatch.setattr(Consumer, "_committed", committed)
    with reader(broker.bus, "pressed-early", group="early", start=1) as consumer:
        with pytest.raises(KeyboardInterrupt):
            consumer.poll(PATIENCE_S)
        assert take(consumer, 2) == [1, 2]


@pytest.mark.parametrize("name", ["commit", "committed", "lag"])
def test_ctrl_c_is_heard_while_the_broker_is_silent(name: str, broker: RunningBroker) -> None:
    fill(broker.bus, "silent", 1)
    is_answered = threading.Event()

    class Silent:
        """librdkafka, whose answers come when the test says so."""

        def __init__(self, raw: Any) -> None:
            self._raw = raw

        def __getattr__(self, asked: str) -> Any:
            if asked in ("commit", "committed", "get_watermark_offsets"):
                # A call of C hears no Ctrl-C, so it is made elsewhere.
                assert threading.current_thread() is not threading.main_thread()
                is_answered.wait(PATIENCE_S)
            return getattr(self._raw, asked)

    with reader(broker.bus, "silent", group=f"silent-{name}") as consumer:
        assert take(consumer, 1) == [0]
        consumer._raw = Silent(consumer._raw)
        timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
        previous = signal.signal(signal.SIGINT, signal.default_int_handler)
        timer.start()
        try:
            with pytest.raises(KeyboardInterrupt):
                getattr(consumer, name)()
        finally:
            signal.signal(signal.SIGINT, previous)
            is_answered.set()


def test_a_loop_that_is_closed_keeps_no_thread_waiting(broker: RunningBroker) -> None:
    fill(broker.bus, "left", 0)

    async def main() -> AsyncConsumer:
        consumer = AsyncConsumer(broker.bus, "left", timeout_s=PATIENCE_S)
        tasks.append(asyncio.create_task(consumer.poll()))
        await asyncio.sleep(0)  # it polls, in its thread
        return consumer

    tasks = list["asyncio.Task[Any]"]()
    loop = asyncio.new_event_loop()
    consumer = loop.run_until_complete(main())
    loop.close()
    (thread,) = consumer._thread._threads
    consumer._thread.shutdown(wait=False)
    thread.join(PATIENCE_S)

    assert not thread.is_alive()
    consumer._client.close()
    tasks[0]._log_destroy_pending = False  # type: ignore[attr-defined]
