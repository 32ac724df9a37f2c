"""Against the embedded broker: the questions are Kafka's, whoever answers them."""

import contextlib
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from headrace.client.broker_questions import api_versions, log_sizes
from headrace.client.bus import Bus
from headrace.client.cluster_questions import cluster_metadata, is_serving, replicas
from headrace.client.errors import BusError
from headrace.client.wire import WireConnection, ask_any
from headrace.testing import RunningBroker, running_broker


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    from confluent_kafka import Producer

    with running_broker() as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap})
        for number in range(5):
            producer.produce("orders", b"%d" % number, partition=0)
        assert producer.flush(120) == 0
        yield broker


@contextlib.contextmanager
def silent_listener() -> Iterator[str]:
    """Takes connections and never answers, as a paused node does."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"127.0.0.1:{listener.getsockname()[1]}"


def closed_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"127.0.0.1:{listener.getsockname()[1]}"


def test_a_dead_and_a_paused_node_among_the_addresses_do_not_matter(broker):
    with silent_listener() as paused:
        bootstrap = f"{closed_port()},{paused},{broker.bootstrap}"

        found = ask_any(Bus(bootstrap), cluster_metadata, timeout_s=120)

    assert [*found.brokers] == [1]


def test_who_has_no_answer_in_time_is_named():
    dead = closed_port()

    with pytest.raises(
        BusError, match=f"{dead} gave no answer within 0.3 s: {dead}: Connection refused"
    ):
        ask_any(Bus(dead), cluster_metadata, timeout_s=0.3)


def test_a_connection_that_closes_early_is_an_error():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        connection = WireConnection(listener.getsockname(), timeout_s=5)
        listener.accept()[0].close()
        with connection, pytest.raises(BusError, match=r"closed|reset") as caught:
            cluster_metadata(connection)

    assert caught.value.is_passing


def test_the_leader_of_a_partition_does_not_lag_behind_itself(broker):
    (replica,) = replicas(Bus(broker.bootstrap))

    assert replica[:5] == ("orders", 0, 1, (1,), (1,))
    assert replica.lag_by_node in ({1: 0}, {})
    assert not replica.is_under_replicated


def test_who_is_silent_is_a_timeout_with_a_sentence():
    with silent_listener() as paused, pytest.raises(BusError) as caught:
        ask_any(Bus(paused), cluster_metadata, timeout_s=0.2)

    assert caught.value.is_timeout
    assert f"{paused} gave no answer within 0.2 s" in str(caught.value)


def test_a_broker_tells_its_apis_and_the_bytes_on_its_disk(broker):
    (address,) = Bus(broker.bootstrap).addresses
    with WireConnection(address) as connection:
        assert api_versions(connection)[1] == (4, 18)
        assert log_sizes(connection)["orders", 0] > 0


@contextlib.contextmanager
def answering(payload: bytes) -> Iterator[tuple[str, int]]:
    """Reads one frame, answers with `payload` and closes."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with listener, listener.accept()[0] as peer, peer.makefile("rb") as requests:
            (length,) = struct.unpack(">i", requests.read(4))
            requests.read(length)
            peer.sendall(payload)

    thread = threading.Thread(target=serve)
    thread.start()
    yield listener.getsockname()
    thread.join()


NO_BROKER = bytes(4) + bytes(1) + bytes(4) + b"\1" + b"\0" + bytes(4) + b"\1" + b"\0"


@pytest.mark.parametrize(
    "payload",
    [
        struct.pack(">i", len(NO_BROKER)) + NO_BROKER,
        struct.pack(">i", 8),  # cut short
        struct.pack(">iii", -1, 1, 1),
        struct.pack(">ii", 4, 1),  # nothing behind the header
        b"HTTP/1.1 400 Bad Request\r\n",
        b"",
    ],
)
def test_only_an_answer_with_a_broker_in_it_is_service(payload):
    with answering(payload) as address:
        assert not is_serving(address)


def test_a_broker_serves_and_a_closed_port_does_not(broker):
    (address,), (nobody,) = Bus(broker.bootstrap).addresses, Bus(closed_port()).addresses

    assert is_serving(address)
    assert not is_serving(nobody)


def test_an_answer_that_is_none_is_an_error_that_stays():
    with (
        answering(struct.pack(">ii", 4, 1)) as address,
        WireConnection(address) as connection,
        pytest.raises(BusError, match="the answer is none of Kafka's") as caught,
    ):
        api_versions(connection)

    assert not caught.value.is_passing


def test_who_asks_nothing_of_the_kind_does_not_load_kio():
    program = (
        "import sys, headrace.client.admin, headrace.client.asynchronous, headrace.client.ranges;"
        "print(*(name for name in sys.modules if name.split('.')[0] == 'kio'))"
    )
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)

    assert loaded.stdout.split() == []


def test_a_broker_that_sends_a_byte_now_and_then_has_no_more_time_than_others():
    is_over = threading.Event()

    def drip() -> None:
        client = listener.accept()[0]
        with client, contextlib.suppress(OSError):
            client.sendall(struct.pack(">i", 1_000_000))
            while not is_over.wait(0.05):
                client.sendall(b"x")

    thread = threading.Thread(target=drip)
    guard = threading.Timer(20, is_over.set)  # it would last for hours
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread.start()
        guard.start()
        with (
            WireConnection(listener.getsockname(), timeout_s=0.5) as connection,
            pytest.raises(BusError, match=r"gave no answer within 0\.5 s") as caught,
        ):
            cluster_metadata(connection)
        guard.cancel()
        is_over.set()
        thread.join()

    assert caught.value.is_timeout


def test_an_answer_that_came_too_late_is_not_taken_for_the_next():
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        WireConnection(listener.getsockname(), timeout_s=0.2) as connection,
    ):
        client = listener.accept()[0]
        with client:
            with pytest.raises(BusError, match="gave no answer"):
                api_versions(connection)
            client.sendall(struct.pack(">iihi", 10, 0, 0, 0))
            with pytest.raises(BusError):
                api_versions(connection)
