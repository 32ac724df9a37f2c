import asyncio
import multiprocessing
import os
import socket
import threading
import time
import warnings
from collections.abc import Iterator

import pytest

from headrace.client.asynchronous import AsyncProducer
from headrace.client.bus import Bus
from headrace.client.consumer import Consumer
from headrace.client.errors import BusError, PropertyError
from headrace.client.message import Delivery, Message
from headrace.client.producer import Producer
from headrace.testing import RunningBroker, running_broker

PATIENCE_S = 120.0


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    with running_broker(watched=True) as broker:
        yield broker


def messages_of(bus: Bus, topic: str, count: int) -> list[Message]:
    with Consumer(bus, topic, timeout_s=PATIENCE_S) as consumer:
        found = list[Message]()
        while len(found) < count:
            found += consumer.poll(PATIENCE_S)
    return found


def nobody() -> Bus:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return Bus(f"127.0.0.1:{free.getsockname()[1]}")


def test_a_message_arrives_as_it_was_sent_and_its_delivery_says_where(
    broker: RunningBroker,
) -> None:
    with Producer(broker.bus) as producer:
        delivery = producer.send(
            "whole",
            "gr\u00fcn",
            b"\x00key",
            headers=[("a", "1"), ("a", b"\xff"), ("none", None)],
            partition=0,
            timestamp_ms=1_234,
        )
        done = delivery.wait(PATIENCE_S)
        tombstone = producer.send("whole", None, "k", headers={"only": "one"}).wait(PATIENCE_S)

    assert (done.topic, done.partition, done.offset, done.timestamp_ms) == ("whole", 0, 0, 1_234)
    first, second = messages_of(broker.bus, "whole", 2)
    headers = (("a", b"1"), ("a", b"\xff"), ("none", None))
    assert first == Message("whole", 0, 0, 1_234, b"\x00key", "gr\u00fcn".encode(), headers)
    assert first.text == "gr\u00fcn"
    assert (second.value, second.key, second.offset) == (None, b"k", tombstone.offset)
    with pytest.raises(TypeError, match="whole:0:1 has no value"):
        _ = second.text


def test_leaving_the_block_waits_for_every_acknowledgement(broker: RunningBroker) -> None:
    with Producer(broker.bus, config={"linger.ms": 500}) as producer:
        deliveries = [producer.send("left", b"%d" % number) for number in range(1000)]

    assert {each.is_done for each in deliveries} == {True}
    assert [each.error for each in deliveries] == [None] * 1000
    assert [int(each.text) for each in messages_of(broker.bus, "left", 1000)] == [*range(1000)]
    with pytest.raises(RuntimeError, match="the producer is closed"):
        producer.send("left", b"late")
    producer.close()


def test_a_failure_that_nobody_looked_at_is_raised_by_flush(broker: RunningBroker) -> None:
    with Producer(broker.bus) as producer:
        producer.send("failing", b"x", partition=0).wait(PATIENCE_S)
        lost = [producer.send("failing", b"x", partition=77) for _ in range(3)]
        with pytest.raises(BusError, match="3 messages could not be delivered; the first"):
            producer.flush(PATIENCE_S)
        producer.flush(PATIENCE_S)
        assert lost[0].error is not None
        assert (lost[0].partition, lost[0].offset) == (None, None)

        seen = producer.send("failing", b"x", partition=77)
        with pytest.raises(BusError):
            seen.wait(PATIENCE_S)
        producer.flush(PATIENCE_S)


def test_an_error_on_its_way_out_is_not_replaced_by_one_of_a_delivery(
    broker: RunningBroker,
) -> None:
    def divide(producer: Producer) -> None:
        producer.send("out", b"x", partition=0).wait(PATIENCE_S)
        producer.send("out", b"x", partition=77)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), Producer(broker.bus) as producer:
        divide(producer)


def test_ctrl_c_does_not_wait_for_a_broker_that_is_away() -> None:
    deliveries = list[Delivery]()

    def press(producer: Producer) -> None:
        deliveries.append(producer.send("away", b"x"))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), Producer(nobody()) as producer:
        press(producer)

    assert "given up" in str(deliveries[0].error)


def test_a_broker_that_is_away_is_named_when_the_time_is_over() -> None:
    bus = nobody()
    with Producer(bus, config={"message.timeout.ms": 300}) as producer:
        delivery = producer.send("away", b"x")
        with pytest.raises(TimeoutError, match="1 messages were not acknowledged within 0 s"):
            producer.flush(0)
        with pytest.raises(BusError, match=f"{bus.bootstrap}: .*Connection refused") as failed:
            delivery.wait(PATIENCE_S)
        assert failed.value.is_passing


def test_close_gives_up_what_is_on_its_way_when_its_time_is_over() -> None:
    producer = Producer(nobody())
    delivery = producer.send("away", b"x")
    with pytest.raises(BusError, match=r"not acknowledged within 0\.1 s, and were given up"):
        producer.close(0.1)
    assert delivery.is_done


def test_a_full_queue_is_waited_for_and_told_of_after_a_while(broker: RunningBroker) -> None:
    small = {"queue.buffering.max.messages": 10, "linger.ms": 0}
    with Producer(broker.bus, config=small) as producer:
        for number in range(500):
            producer.send("narrow", b"%d" % number)
    assert len(messages_of(broker.bus, "narrow", 500)) == 500

    stuck = Producer(nobody(), config=small)
    for _ in range(10):
        stuck.send("away", b"x")
    with pytest.raises(BusError, match=r"queue of 10 messages is full.*took none.*within 0.1 s"):
        stuck.send("away", b"x", timeout_s=0.1)
    stuck.abandon()
    assert stuck.waiting == 0


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"value": 3.5}, "value is float"),
        ({"key": 1}, "key is int"),
        ({"headers": {"a": 1}}, "header a is int"),
        ({"partition": -1}, "partition -1 is not there"),
        ({"timestamp_ms": -5}, "timestamp_ms -5"),
        ({"topic": ""}, "a topic is a name, not ''"),
    ],
)
def test_what_cannot_be_sent_is_named(
    broker: RunningBroker, arguments: dict[str, object], error: str
) -> None:
    with Producer(broker.bus) as producer:
        with pytest.raises((TypeError, ValueError), match=error):
            producer.send(**{"topic": "named", **arguments})  # type: ignore[arg-type]
        assert producer.waiting == 0


def test_a_message_larger_than_the_limit_is_refused_at_once(broker: RunningBroker) -> None:
    with Producer(broker.bus) as producer:
        delivery = producer.send("large", bytes(2_000_000))
        assert delivery.is_done
        with pytest.raises(BusError) as refused:
            delivery.wait()
        assert "MSG_SIZE" in refused.value.name
        assert producer.waiting == 0


def test_a_property_that_cannot_work_is_named_with_where_it_was_written() -> None:
    with pytest.raises(PropertyError, match="acks: "):
        Producer(Bus(properties={"acks": "most"}))


def test_a_callback_hears_of_each_delivery_once_and_may_fail(broker: RunningBroker) -> None:
    heard = list[Delivery]()
    both = threading.Event()

    def fail(_delivery: Delivery) -> None:
        raise ZeroDivisionError

    def hear(delivery: Delivery) -> None:
        heard.append(delivery)
        both.set()

    with Producer(broker.bus) as producer:
        delivery = producer.send("heard", b"x")
        delivery.add_done_callback(fail)
        delivery.add_done_callback(hear)
        assert both.wait(PATIENCE_S)
        delivery.wait(PATIENCE_S)
        delivery.add_done_callback(hear)  # done already: called at once

    assert heard == [delivery, delivery]
    assert f"{delivery!r}" == f"<Delivery to heard:0:{delivery.offset}>"


def test_many_threads_send_by_one_producer(broker: RunningBroker) -> None:
    with Producer(broker.bus, config={"linger.ms": 0}) as producer:

        def send() -> None:
            for number in range(500):
                producer.send("shared", b"%d" % number).wait(PATIENCE_S)

        threads = [threading.Thread(target=send) for _ in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join(PATIENCE_S)

    assert len(messages_of(broker.bus, "shared", 2000)) == 2000


def test_a_producer_in_an_event_loop_awaits_its_deliveries(broker: RunningBroker) -> None:
    async def main() -> list[int | None]:
        config = {"queue.buffering.max.messages": 50, "linger.ms": 0}
        async with AsyncProducer(broker.bus, config=config) as producer:
            deliveries = [await producer.send("looped", b"x", partition=0) for _ in range(300)]
            offsets = [(await each).offset for each in deliveries]
            await producer.flush(PATIENCE_S)
            with pytest.raises(BusError):
                await (await producer.send("looped", b"x", partition=77))
            late = await producer.send("looped", b"x", partition=0)
            late.wait(PATIENCE_S)
            assert (await late).offset == 300
        return offsets

    assert asyncio.run(main()) == [*range(300)]


def test_an_awaited_delivery_may_be_cancelled(broker: RunningBroker) -> None:
    async def main() -> None:
        async with AsyncProducer(nobody()) as producer:
            delivery = await producer.send("away", b"x")
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await delivery
            assert not delivery.is_done
            with pytest.raises(BusError, match="given up"):
                await producer.close(0.05)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("properties", "offset"),
    [
        ({"acks": "0"}, None),
        ({"acks": "1"}, 0),
        ({"acks": "all"}, 0),
        ({"retries": "0"}, 0),
        ({"max.in.flight.requests.per.connection": "20"}, 0),
    ],
    ids=str,
)
def test_who_wants_less_than_once_and_in_order_gets_it(
    broker: RunningBroker, properties: dict[str, str], offset: int | None
) -> None:
    with Producer(Bus(broker.bootstrap, properties)) as producer:
        topic = "-".join(["less", *properties, *properties.values()])
        assert producer.send(topic, b"x").wait(PATIENCE_S).offset == offset


def test_a_callback_that_would_wait_for_ever_is_told(broker: RunningBroker) -> None:
    told = list[BaseException]()
    is_over = threading.Event()

    with Producer(broker.bus) as producer:

        def send_and_wait(_delivery: Delivery) -> None:
            try:
                producer.send("waited", b"y").wait()
            except RuntimeError as error:
                told.append(error)
            is_over.set()

        producer.send("waited", b"x").add_done_callback(send_and_wait)
        assert is_over.wait(PATIENCE_S)

    assert "a callback cannot wait" in str(told[0])
    assert len(messages_of(broker.bus, "waited", 2)) == 2


def test_a_send_that_was_interrupted_keeps_nobody_waiting(broker: RunningBroker) -> None:
    class Interrupted(Delivery):
        """Is known to the producer, and not to librdkafka: Ctrl-C came in between."""

    producer = Producer(broker.bus)
    delivery = Interrupted("halfway", producer._waiting)
    producer._outstanding.add(delivery)

    with pytest.raises(BusError, match="interrupted before it was queued"):
        producer.close()
    assert delivery.is_done
    assert producer.waiting == 0


def test_a_topic_that_nobody_makes_is_asked_after() -> None:
    with (
        running_broker(auto_create_topics_enable=False) as broker,
        Producer(broker.bus, config={"message.timeout.ms": 500}) as producer,
        pytest.raises(BusError, match="no message to nowhere in time; is the topic there"),
    ):
        producer.send("nowhere", b"x").wait(PATIENCE_S)


@pytest.mark.parametrize("raised", [SystemExit(3), asyncio.CancelledError()])
def test_no_callback_ends_the_thread_that_hears_of_deliveries(
    raised: BaseException, broker: RunningBroker
) -> None:
    def fail(_delivery: Delivery) -> None:
        raise raised

    with Producer(broker.bus, config={"queue.buffering.max.messages": 10}) as producer:
        first = producer.send("unharmed", b"x")
        first.add_done_callback(fail)
        first.wait(PATIENCE_S)
        for _ in range(30):  # nobody would make room
            producer.send("unharmed", b"y", timeout_s=PATIENCE_S)


@pytest.mark.parametrize("name", ["flush", "close"])
def test_a_callback_that_flushes_is_told_and_harms_nobody(name: str, broker: RunningBroker) -> None:
    told = list[str]()
    with Producer(broker.bus, config={"linger.ms": 100}) as producer:

        def end(_delivery: Delivery) -> None:
            try:
                getattr(producer, name)()
            except RuntimeError as error:
                told.append(str(error))

        deliveries = [producer.send("flushed", b"x") for _ in range(20)]
        deliveries[0].add_done_callback(end)
        for each in deliveries:
            each.wait(PATIENCE_S)

    assert "a callback cannot wait" in told[0]


def test_a_callback_in_the_thread_that_flushes_cannot_wait_either(broker: RunningBroker) -> None:
    told = list[type[BaseException]]()
    with Producer(broker.bus) as producer:
        first, second = Delivery("t", producer._waiting), Delivery("t", producer._waiting)

        def wait(_delivery: Delivery) -> None:
            try:
                second.wait(0.1)
            except (RuntimeError, TimeoutError) as error:
                told.append(type(error))

        first.add_done_callback(wait)
        first.finish(None, 0, 0)  # as librdkafka's report does, in whose thread it comes

    assert told == [RuntimeError]


@pytest.mark.parametrize("name", ["flush", "close", "leave"])
def test_a_cancelled_wait_for_a_broker_that_is_away_is_over_at_once(name: str) -> None:
    async def main() -> float:
        producer = AsyncProducer(nobody())
        waits = {
            "flush": producer.flush,
            "close": producer.close,
            "leave": lambda: producer.__aexit__(None, None, None),
        }
        await producer.send("away", b"x")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(waits[name](), 0.3)
        producer._producer.abandon()
        return time.monotonic()

    is_over = asyncio.run(main())  # waits for the threads of its executor
    assert time.monotonic() - is_over < 60  # half of what the message has


def test_a_child_by_fork_has_a_closed_producer_and_its_parent_an_open_one(
    broker: RunningBroker,
) -> None:
    def child() -> None:
        try:
            producer.send("forked", b"child")
        except RuntimeError:
            producer.close()
            os._exit(7)

    with Producer(broker.bus) as producer:
        producer.send("forked", b"before").wait(PATIENCE_S)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # newer ones warn of a fork
            process = multiprocessing.get_context("fork").Process(target=child)
            process.start()
        process.join(PATIENCE_S)
        producer.send("forked", b"after").wait(PATIENCE_S)

    assert process.exitcode == 7
