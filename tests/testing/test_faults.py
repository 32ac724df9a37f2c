"""Faults as a real client meets them."""

import socket
import time
from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient

from headrace.testing import Faults, RunningBroker, running_broker

DEADLINE_SECONDS = 120.0


@pytest.fixture
def broker() -> Iterator[RunningBroker]:
    with running_broker(watched=True, in_memory=True) as broker:
        yield broker


def producer(broker: RunningBroker, **config: object) -> Producer:
    quick = {"retry.backoff.ms": 10, "reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 50}
    names = {name.replace("_", "."): value for name, value in config.items()}
    return Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0, **quick, **names})


def send(producer: Producer, *values: str) -> list[Message]:
    """Send these and return how each was reported."""
    reports: list[tuple[object, Message]] = []
    for value in values:
        producer.produce(
            "orders", value, partition=0, on_delivery=lambda *report: reports.append(report)
        )
    assert producer.flush(DEADLINE_SECONDS) == 0
    return [message for _, message in reports]


def is_closed(client: socket.socket) -> bool:
    try:
        while client.recv(65536):
            pass
    except ConnectionResetError:
        pass
    return True


def end_offset(broker: RunningBroker) -> int:
    async def look() -> int:
        return broker.server.service.broker.topics.log("orders", 0).log_end_offset

    return broker.run(look)


def test_a_refused_produce_is_tried_again_and_arrives_once(broker: RunningBroker) -> None:
    broker.faults.fail("Produce", "NOT_ENOUGH_REPLICAS", times=2)

    (message,) = send(producer(broker), "a")

    assert message.error() is None
    assert len(broker.requests.of("Produce")) == 3
    assert end_offset(broker) == 1


def test_an_error_that_cannot_be_mended_reaches_the_application(broker: RunningBroker) -> None:
    broker.faults.fail("Produce", 29)  # TOPIC_AUTHORIZATION_FAILED

    (message,) = send(producer(broker), "a")

    error = message.error()
    assert error is not None
    assert error.code() == 29


def test_the_nth_request_is_struck_and_no_other(broker: RunningBroker) -> None:
    broker.faults.fail("Produce", "MESSAGE_TOO_LARGE", nth=2)
    sender = producer(broker)

    failed = [send(sender, value)[0].error() is not None for value in "abc"]

    assert failed == [False, True, False]


def test_a_lost_answer_makes_an_idempotent_producer_repeat_what_is_there(
    broker: RunningBroker,
) -> None:
    broker.faults.lose_answer("Produce")

    (message,) = send(producer(broker, enable_idempotence=True), "a")

    assert message.error() is None
    assert len(broker.requests.of("Produce")) == 2
    assert end_offset(broker) == 1


def test_a_lost_answer_doubles_a_message_without_idempotence(broker: RunningBroker) -> None:
    broker.faults.lose_answer("Produce")

    send(producer(broker, enable_idempotence=False), "a")

    assert end_offset(broker) == 2


def test_a_request_on_which_the_connection_is_closed_was_not_carried_out(
    broker: RunningBroker,
) -> None:
    broker.faults.disconnect("Produce")

    send(producer(broker, enable_idempotence=False), "a")

    assert len(broker.requests.of("Produce")) == 2
    assert end_offset(broker) == 1


def test_a_delayed_request_is_carried_out_later_and_those_behind_it_wait(
    broker: RunningBroker,
) -> None:
    sender = producer(broker)
    send(sender, "a")
    broker.faults.delay("Produce", 0.3, times=1)
    begin = time.monotonic()

    messages = send(sender, "b", "c")

    assert time.monotonic() - begin >= 0.3
    assert [message.offset() for message in messages] == [1, 2]


def test_new_connections_are_closed_while_they_are_refused(broker: RunningBroker) -> None:
    with broker.faults.refused_connections():
        admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
        with pytest.raises(KafkaException):
            admin.list_topics(timeout=0.3)

    assert admin.list_topics(timeout=DEADLINE_SECONDS).brokers


def test_open_connections_can_be_closed_all_at_once(broker: RunningBroker) -> None:
    with socket.create_connection((broker.host, broker.port)) as client:
        client.sendall(bytes.fromhex("0000000a0012000000000001ffff"))
        client.settimeout(DEADLINE_SECONDS)
        assert client.recv(4)
        broker.disconnect_all()

        assert is_closed(client)


def test_a_cleared_broker_behaves(broker: RunningBroker) -> None:
    broker.faults.fail("Produce", 29, times=None)
    broker.faults.clear()

    (message,) = send(producer(broker), "a")

    assert message.error() is None


def test_an_api_that_is_not_there_is_named_with_one_that_is() -> None:
    with pytest.raises(ValueError, match="'Prodce'; did you mean 'Produce'"):
        Faults().fail("Prodce", 1)


def test_an_error_that_is_not_there_is_named() -> None:
    with pytest.raises(ValueError, match="no error 'OOPS'"):
        Faults().fail("Produce", "OOPS")


@pytest.mark.parametrize(("nth", "times"), [(0, 1), (1, 0)])
def test_counts_begin_at_one(nth: int, times: int) -> None:
    with pytest.raises(ValueError, match="count from 1"):
        Faults().disconnect("Produce", nth=nth, times=times)
