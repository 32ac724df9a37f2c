"""Clients that take without giving: memory stays bounded, all others are served."""

import contextlib
import resource
import socket
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from kio.schema.errors import ErrorCode
from kio.schema.metadata.v9.request import MetadataRequest, MetadataRequestTopic

from headrace.records.codecs import Codec
from headrace.testing import broker_process

MIB = 1024 * 1024
WITNESS = "witness"


def rss_of(broker: Any) -> int:
    return int(psutil.Process(broker.pid).memory_info().rss)


@pytest.fixture
def many_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 4096:
        pytest.skip(f"needs 4096 open files, the hard limit is {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 4096), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture
def guarded(tmp_path: Path, connect: Callable[..., Any]) -> Callable[..., Any]:
    """`guarded(**settings)`: a broker process with the witness's topic, warmed up."""

    @contextlib.contextmanager
    def run(**broker_settings: object) -> Iterator[Any]:
        with broker_process(tmp_path, **broker_settings) as broker:
            wire = connect(broker.port)
            assert wire.create_topic(WITNESS) == 0
            wire.check_served()
            yield broker, wire
            wire.check_served()
            assert "Traceback" not in broker.stderr_text()

    return run


def test_a_thousand_idle_connections_are_cheap_and_harmless(
    many_files: None, guarded: Any, connect: Callable[..., Any], until: Callable[..., Any]
) -> None:
    with guarded() as (broker, wire):
        process = psutil.Process(broker.pid)
        fds, before = process.num_fds(), rss_of(broker)

        idle = []
        while len(idle) < 1000:
            # No more at once than the listen backlog takes, or the kernel lets them wait.
            idle += [connect(broker.port) for _ in range(40)]
            wanted = fds + len(idle)
            until(lambda n=wanted: process.num_fds() >= n, "all are accepted")

        wire.check_served()
        assert rss_of(broker) - before < 128 * MIB
        for one in idle:
            one.close()
        until(lambda: process.num_fds() <= fds + 10, "all are let go")


def fill(wire: Any, topic: str, mebibytes: int, batch: Callable[..., bytes]) -> None:
    data = batch([b"f" * (MIB // 2)])
    for _ in range(2 * mebibytes):
        wire.send_batch(topic, 0, data, acks=1)
    for _ in range(2 * mebibytes):
        assert wire.receive_ack().error_code == 0


def push(client: socket.socket, data: bytes) -> int:
    """Send until the broker takes no more; how many bytes it took."""
    client.settimeout(0.5)  # not a wait for an event: the absence of one is what is looked for
    sent = 0
    with contextlib.suppress(TimeoutError):
        while sent < len(data):
            sent += client.send(data[sent : sent + 65536])
    return sent


def test_readers_that_never_read_are_not_read_for(
    guarded: Any,
    connect: Callable[..., Any],
    batch: Callable[..., bytes],
    frame: Callable[..., bytes],
) -> None:
    with guarded() as (broker, wire):
        assert wire.create_topic("big") == 0
        fill(wire, "big", 48, batch)
        before = rss_of(broker)

        for _ in range(8):
            reader = connect(broker.port)
            for _ in range(100):
                reader.send_fetch("big", 0, 0, 50 * MIB)

        for _ in range(20):
            wire.check_served()
        assert rss_of(broker) - before < 64 * MIB


@pytest.mark.parametrize("event", ["the log grows", "the log is cut", "the topic is deleted"])
def test_a_reader_that_pauses_gets_the_bytes_it_was_promised(
    event: str,
    tmp_path: Path,
    guarded: Any,
    connect: Callable[..., Any],
    batch: Callable[..., bytes],
) -> None:
    with guarded() as (_, wire):
        assert wire.create_topic("big") == 0
        fill(wire, "big", 24, batch)
        written = (tmp_path / "big-0" / f"{0:020d}.log").read_bytes()
        reader = connect(wire.port)
        for _ in range(3):
            reader.send_fetch("big", 0, 0, 50 * MIB)
        begun = reader.socket.recv(MIB, socket.MSG_PEEK)

        if event == "the log grows":
            fill(wire, "big", 4, batch)
        elif event == "the log is cut":
            assert wire.delete_records("big", 0, 20) == 0
        else:
            assert wire.delete_topic("big") == 0
        for _ in range(20):
            wire.check_served()

        assert begun
        first = reader.receive().responses[0].partitions[0]
        assert first.error_code == 0
        assert first.records == written[: len(first.records)]
        assert len(first.records) > 20 * MIB


def test_pipelined_requests_without_reading_are_left_in_the_socket(
    guarded: Any, connect: Callable[..., Any], frame: Callable[..., bytes]
) -> None:
    with guarded() as (broker, wire):
        assert wire.create_topic("wide", 1000) == 0
        flood = connect(broker.port)
        question = MetadataRequest(
            topics=(MetadataRequestTopic(name="wide"),),
            allow_auto_topic_creation=False,
            include_cluster_authorized_operations=False,
            include_topic_authorized_operations=False,
        )
        wire.ask(question)
        before = rss_of(broker)
        first = frame(question, 1)
        frames = b"".join(
            first[:8] + number.to_bytes(4, "big") + first[12:] for number in range(1, 150_000)
        )

        taken = push(flood.socket, frames)

        assert taken < len(frames), "the broker read on although nobody reads"
        wire.check_served()
        assert rss_of(broker) - before < 64 * MIB
        flood.socket.settimeout(120)
        for number in range(1, 500):
            assert flood.receive_frame()[:4] == struct.pack(">i", number)


def test_waiting_fetches_of_one_connection_are_bounded(
    guarded: Any, connect: Callable[..., Any], frame: Callable[..., bytes]
) -> None:
    with guarded() as (broker, wire):
        flood = connect(broker.port)
        end = wire.offset_at(WITNESS, 0, -1)
        before = rss_of(broker)
        flood.send_fetch(WITNESS, 0, end, max_wait_ms=600_000)
        copies = frame(flood.pipelined[-1]) * 100_000

        taken = push(flood.socket, copies)

        assert taken < len(copies), "the broker read on although nothing is answered"
        assert rss_of(broker) - before < 64 * MIB


def test_a_large_request_costs_what_has_arrived_of_it(
    guarded: Any, connect: Callable[..., Any]
) -> None:
    with guarded() as (broker, wire):
        before = rss_of(broker)

        for _ in range(20):
            slow = connect(broker.port)
            slow.socket.sendall(struct.pack(">i", 90 * MIB) + bytes(MIB // 2))

        wire.check_served()
        assert rss_of(broker) - before < 64 * MIB


def test_large_requests_together_stay_within_the_budget(
    guarded: Any, connect: Callable[..., Any]
) -> None:
    budget = 32 * MIB
    with guarded(headrace_buffer_memory_bytes=budget) as (broker, wire):
        before = rss_of(broker)

        taken = 0
        for _ in range(3):
            slow = connect(broker.port)
            taken += push(slow.socket, struct.pack(">i", 90 * MIB) + bytes(24 * MIB))

        assert taken < 3 * 24 * MIB, "all of it was taken in"
        wire.check_served()
        assert rss_of(broker) - before < budget + 64 * MIB


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_those_who_hoard_the_budget_make_room_for_an_honest_request(
    guarded: Any, connect: Callable[..., Any], batch: Callable[..., bytes]
) -> None:
    with guarded(headrace_buffer_memory_bytes=32 * MIB) as (broker, _):
        for _ in range(4):
            hoarder = connect(broker.port)
            push(hoarder.socket, struct.pack(">i", 90 * MIB) + bytes(8 * MIB))

        honest = connect(broker.port, timeout=120)
        ack = honest.produce(WITNESS, 0, batch([b"h" * (MIB - 1000)]))

        assert ack.error_code == 0


def test_large_requests_that_are_refused_do_not_pile_up(
    guarded: Any,
    connect: Callable[..., Any],
    batch: Callable[..., bytes],
    until: Callable[..., Any],
) -> None:
    with guarded() as (broker, _):
        before = rss_of(broker)

        for _ in range(3):
            large = connect(broker.port)
            ack = large.produce(WITNESS, 0, batch([bytes(90 * MIB)]))
            assert ack.error_code == ErrorCode.message_too_large
            large.close()

        until(lambda: rss_of(broker) - before < 64 * MIB, "their memory is given back")


def test_compression_bombs_are_refused_and_do_not_pile_up(
    guarded: Any,
    connect: Callable[..., Any],
    batch: Callable[..., bytes],
    until: Callable[..., Any],
) -> None:
    bomb = batch([bytes(192 * MIB)], codec=Codec.ZSTD)
    with guarded() as (broker, wire):
        before = rss_of(broker)

        for _ in range(3):
            assert wire.produce(WITNESS, 0, bomb).error_code != 0

        until(lambda: rss_of(broker) - before < 64 * MIB, "their memory is given back")
