import json
import socket
import struct
import threading
from contextlib import contextmanager
from uuid import UUID

import pytest

from bench.clients import (
    librdkafka_consume,
    librdkafka_produce,
    parse_result,
    replay,
)
from bench.errors import BenchError
from bench.requests import write_fetch_requests, write_produce_requests
from bench.topics import admin_of, create_topic, delete_topic


@contextmanager
def broker_answering(make_answer):
    """A broker of one connection that answers each request with `make_answer(correlation id)`."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        with listener.accept()[0] as connection, connection.makefile("rb") as requests:
            while prefix := requests.read(4):
                request = requests.read(struct.unpack(">i", prefix)[0])
                answer = make_answer(struct.unpack_from(">i", request, 4)[0])
                try:
                    connection.sendall(struct.pack(">i", len(answer)) + answer)
                except OSError:
                    return

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.close()
        thread.join()


def produce_answer(correlation_id, error=0, base_offset=0):
    partition = struct.pack(">ihqqq", 0, error, base_offset, -1, 0) + b"\x01\x00\x00"
    return (
        struct.pack(">i", correlation_id) + b"\x00"
        b"\x02" + b"\x02t" + b"\x02" + partition + b"\x00" + bytes(4) + b"\x00"
    )


@pytest.fixture
def pings(tmp_path):
    path = tmp_path / "requests"
    write_produce_requests(path, topic="t", partitions=1, value_bytes=10, messages=2, acks=1)
    return path


def test_replay_counts_what_was_acknowledged(pings):
    with broker_answering(produce_answer) as port:
        load = replay(port, produce=pings, in_flight=5, count=100).produce

    assert load is not None
    assert (load.requests, load.messages) == (100, 200)
    assert 0 < load.p50_us <= load.p99_us <= load.p999_us <= load.max_us * 1.01


def test_replay_fails_on_an_error_code(pings):
    with (
        broker_answering(lambda correlation_id: produce_answer(correlation_id, error=6)) as port,
        pytest.raises(BenchError, match="answered with error 6"),
    ):
        replay(port, produce=pings, count=1)


def test_replay_fails_on_answers_out_of_order(pings):
    with (
        broker_answering(lambda correlation_id: produce_answer(correlation_id + 1)) as port,
        pytest.raises(BenchError, match="out of order"),
    ):
        replay(port, produce=pings, count=1)


def test_replay_fails_on_an_answer_cut_short(pings):
    with (
        broker_answering(lambda correlation_id: produce_answer(correlation_id)[:12]) as port,
        pytest.raises(BenchError, match="ends too early"),
    ):
        replay(port, produce=pings, count=1)


def test_replay_fails_on_fetched_bytes_that_are_no_batch(tmp_path):
    write_fetch_requests(tmp_path / "f", topic_id=UUID(int=1), partitions=1)

    def answer(correlation_id):
        partition = struct.pack(">ihqqq", 0, 0, 9, 9, 0) + b"\x01" + struct.pack(">i", -1)
        partition += b"\x65" + bytes(100) + b"\x00"
        return (
            struct.pack(">i", correlation_id) + b"\x00" + struct.pack(">ihi", 0, 0, 0)
            + b"\x02" + bytes(16) + b"\x02" + partition + b"\x00\x00"
        )  # fmt: skip

    with broker_answering(answer) as port, pytest.raises(BenchError, match="not a batch"):
        replay(port, fetch=tmp_path / "f", seconds=5)


def test_replay_fails_when_nobody_listens(pings):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

    with pytest.raises(BenchError, match="cannot connect"):
        replay(port, produce=pings, count=1)


def test_what_a_client_prints_becomes_rates():
    fields = {"messages": 100, "bytes": 5_000_000, "seconds": 2.0}

    result = parse_result(json.dumps({"consume": fields, "client_cpu_seconds": 1.5}))

    assert result.produce is None
    assert result.fetch is not None
    assert result.fetch.messages_per_second == 50
    assert result.fetch.megabytes_per_second == 2.5


@pytest.mark.java
def test_everything_replayed_to_kafka_can_be_walked(kafka_node, tmp_path):
    admin = admin_of(kafka_node.port)
    topic_id = create_topic(admin, "walk", 2)
    write_produce_requests(
        tmp_path / "p", topic="walk", partitions=2, value_bytes=100, messages=50, acks=-1
    )
    write_fetch_requests(tmp_path / "f", topic_id=topic_id, partitions=2)

    produced = replay(
        kafka_node.port, produce=tmp_path / "p", connections=4, in_flight=5, count=400
    ).produce
    followed = replay(kafka_node.port, fetch=tmp_path / "f", fetch_connections=2, seconds=1).fetch
    looped = replay(
        kafka_node.port, fetch=tmp_path / "f", fetch_connections=2, seconds=1, loops=True
    ).fetch
    delete_topic(admin, "walk")

    assert produced is not None
    assert followed is not None
    assert looped is not None
    assert produced.messages == 400 * 50
    assert (followed.messages, followed.bytes) == (produced.messages, produced.bytes)
    assert looped.messages > 2 * produced.messages


@pytest.mark.java
def test_librdkafka_consumes_what_it_produced(kafka_node):
    admin = admin_of(kafka_node.port)
    create_topic(admin, "rdk")
    produced = librdkafka_produce(
        kafka_node.port, "rdk", value_bytes=100, seconds=0.2, settings={"acks": "all"}
    ).produce
    assert produced is not None
    consumed = librdkafka_consume(
        kafka_node.port, "rdk", messages=produced.messages, seconds=0.5, settings={}
    ).fetch
    delete_topic(admin, "rdk")

    assert consumed is not None
    assert produced.bytes == produced.messages * 100
    assert consumed.bytes == consumed.messages * 100


@pytest.mark.java
def test_a_refused_topic_is_named(kafka_node):
    with pytest.raises(BenchError, match="topic a b was refused"):
        create_topic(admin_of(kafka_node.port), "a b")
