"""Bytes no honest client sends: the culprit gets an error or is closed, all others are served."""

import contextlib
import dataclasses
import logging
import random
import socket
import struct
import types
import typing
import uuid
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.broker.dispatch import APIS
from headrace.testing import RunningBroker, broker_process, running_broker

MIB = 1024 * 1024
TOPIC, WITNESS = "fuzz", "witness"
INTERESTING = (-(2**63), -(2**31), -1, 0, 1, 127, 128, 255, 32767, 32768, 2**31 - 1, 2**63 - 1)
# Numbers that make a generated request do something rather than fail at once.
NUMBERS = {"acks": -1, "num_partitions": 2, "replication_factor": 1, "count": 3, "magic": 2,
           "fetch_offset": 0, "max_bytes": MIB, "partition_max_bytes": MIB, "min_bytes": 1,
           "session_id": 0, "session_epoch": -1, "replica_id": -1, "producer_id": -1,
           "producer_epoch": -1, "resource_type": 2, "timestamp": -1,
           "response_partition_limit": 10, "current_leader_epoch": -1}  # fmt: skip
TEXTS = {"transactional_id": None, "name": TOPIC, "topic": TOPIC, "resource_name": TOPIC}


# --- requests to start from: every API at every version, as kio has it


def sample(schema: Any, batch: bytes) -> Any:
    """A request that makes sense to the broker, built from the schema alone."""
    hints = typing.get_type_hints(schema)
    values = {
        one.name: sample_field(one.name, hints[one.name], one.metadata.get("kafka_type"), batch)
        for one in dataclasses.fields(schema)
    }
    return schema(**values)


def sample_field(name: str, hint: Any, kafka_type: str | None, batch: bytes) -> Any:
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        hint = next(one for one in typing.get_args(hint) if one is not type(None))
    if typing.get_origin(hint) is tuple:
        return (sample_field(name, typing.get_args(hint)[0], kafka_type, batch),)
    if dataclasses.is_dataclass(hint):
        return sample(hint, batch)
    match kafka_type:
        case "string":
            in_config = name == "value"
            return "60000" if in_config else TEXTS.get(name, "retention.ms")
        case "bool":
            return False
        case "uuid":
            return uuid.UUID(int=7)
        case "records" | "bytes":
            return batch
        case "timedelta_i32" | "timedelta_i64":
            return timedelta(milliseconds=10)
        case "float64":
            return 0.5
    return NUMBERS.get(name, 0)


@pytest.fixture(scope="module")
def seeds(frame: Callable[..., bytes], request_schema: Callable[..., Any]) -> list[bytes]:
    from headrace.records.builder import build_batch, numbered

    batch = bytes(build_batch(numbered([b"one", b"two"], key=b"k", timestamp=1)))
    return [
        frame(sample(request_schema(api.key, version), batch))
        for api in APIS.values()
        for version in api.versions
        if (api.key, version) not in ((0, 0), (0, 1), (0, 2))  # advertised, not served
    ]


def mutate(frame: bytes, rng: random.Random) -> bytes:
    """The frame with a few faults; most keep a true length so that they are parsed."""
    data = bytearray(frame)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        at = rng.randrange(4, max(5, len(data)))
        match rng.randrange(7):
            case 0:
                data[at : at + 1] = bytes([rng.randrange(256)])
            case 1 if at < len(data):
                data[at] ^= 1 << rng.randrange(8)
            case 2:
                del data[at : at + rng.randint(1, 16)]
            case 3:
                data[at:at] = bytes(rng.randrange(256) for _ in range(rng.randint(1, 16)))
            case 4:
                data[at:at] = data[at : at + rng.randint(1, 64)]
            case 5:
                width = rng.choice((1, 2, 4, 8))
                number = rng.choice(INTERESTING) % (1 << 8 * width)
                data[at : at + width] = number.to_bytes(width, "big")
            case _:
                del data[at:]
    if rng.randrange(8):
        data[:4] = struct.pack(">i", max(0, len(data) - 4))
    return bytes(data)


# --- a broker in this process, whose defects are seen as logged exceptions


class Defects(logging.Handler):
    """Collects what the broker logs with a traceback: an exception nobody expected."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            self.found.append(logging.Formatter().format(record))


@pytest.fixture(scope="module")
def victim() -> Iterator[RunningBroker]:
    # Its defects end the connection; what it does with the rest of a process is not asked here.
    with running_broker(num_partitions=2, group_initial_rebalance_delay_ms=0) as broker:
        yield broker


@pytest.fixture
def defects() -> Iterator[Defects]:
    handler = Defects()
    logger = logging.getLogger("headrace")
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)
    assert not handler.found, handler.found[0]


@pytest.fixture
def others(victim: RunningBroker, connect: Callable[..., Any]) -> Callable[[], None]:
    """`others()` fails unless a client that did nothing wrong is served."""
    wire = connect(victim.port)
    if WITNESS not in wire.topics():
        assert wire.create_topic(WITNESS) == 0
    return wire.check_served


def attack(port: int, data: bytes) -> None:
    """Send bytes, say that no more come, and wait for the broker to close."""
    client = socket.create_connection(("127.0.0.1", port), 20)
    with client, contextlib.suppress(ConnectionError):
        client.sendall(data)
        client.shutdown(socket.SHUT_WR)
        while client.recv(1 << 16):
            pass


def test_every_request_the_fuzz_starts_from_is_answered(
    victim: RunningBroker, seeds: list[bytes], defects: Defects, connect: Callable[..., Any]
) -> None:
    """Else mutating them would only ever try the first few bytes of a parser."""
    for seed in seeds:
        wire = connect(victim.port)
        wire.socket.sendall(seed)
        assert wire.receive_frame()[:4] == bytes(4), seed


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rng=st.randoms(use_true_random=False))
def test_mutated_requests_meet_no_unexpected_exception(
    rng: random.Random,
    victim: RunningBroker,
    seeds: list[bytes],
    defects: Defects,
    others: Callable[[], None],
) -> None:
    frames = b"".join(mutate(rng.choice(seeds), rng) for _ in range(rng.randint(1, 3)))

    attack(victim.port, frames)

    others()
    assert not defects.found, defects.found[0]


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=400))
def test_random_frames_meet_no_unexpected_exception(
    data: bytes, victim: RunningBroker, defects: Defects, others: Callable[[], None]
) -> None:
    attack(victim.port, struct.pack(">i", len(data)) + data)

    others()
    assert not defects.found, defects.found[0]


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_long_fuzz_costs_no_memory_and_meets_no_exception(
    tmp_path: Path, seeds: list[bytes], connect: Callable[..., Any]
) -> None:
    rng = random.Random("a long fuzz")
    with broker_process(tmp_path) as broker:
        wire = connect(broker.port)
        assert wire.create_topic(WITNESS) == 0
        for _ in range(500):
            attack(broker.port, mutate(rng.choice(seeds), rng))
        rss = psutil.Process(broker.pid).memory_info
        before = rss().rss
        for count in range(100_000):
            attack(broker.port, mutate(rng.choice(seeds), rng))
            if count % 500 == 0:
                wire.check_served()
        wire.check_served()
        logged = broker.stderr_text()
        assert "Traceback" not in logged, logged[logged.index("Traceback") - 500 :][:3000]
        assert rss().rss - before < 64 * MIB
        assert broker.terminate() == 0


# --- lengths, garbage, halves


@pytest.mark.parametrize(
    "length", [-(2**31), -1, 0, 4, 9, 100 * MIB + 1, 2**31 - 1], ids=lambda n: f"length {n}"
)
def test_an_absurd_length_closes_the_connection(
    length: int,
    victim: RunningBroker,
    connect: Callable[..., Any],
    defects: Defects,
    others: Callable[[], None],
) -> None:
    wire = connect(victim.port)

    wire.socket.sendall(struct.pack(">i", length) + b"\0\x12\0\0\0\0\0\x01\xff\xff")

    assert wire.is_closed()
    others()


@pytest.mark.parametrize(
    "garbage",
    [
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        bytes.fromhex("160301020001000001fc0303") + bytes(range(256)) * 2,
        b"\xff" * 4096,
        b"SSH-2.0-OpenSSH_9.2p1\r\n",
    ],
    ids=["HTTP", "TLS hello", "ones", "SSH"],
)
def test_another_protocol_closes_the_connection(
    garbage: bytes,
    victim: RunningBroker,
    connect: Callable[..., Any],
    defects: Defects,
    others: Callable[[], None],
) -> None:
    wire = connect(victim.port)

    wire.socket.sendall(garbage)

    assert wire.is_closed()
    others()


def test_an_array_that_claims_two_billion_elements_closes_the_connection(
    victim: RunningBroker,
    connect: Callable[..., Any],
    defects: Defects,
    others: Callable[[], None],
) -> None:
    wire = connect(victim.port)
    body = struct.pack(">hhih", 3, 1, 1, -1) + struct.pack(">i", 2**31 - 1)

    wire.socket.sendall(struct.pack(">i", len(body)) + body)

    assert wire.is_closed()
    others()


def test_half_frames_hold_nobody_up_and_are_answered_when_whole(
    victim: RunningBroker,
    connect: Callable[..., Any],
    seeds: list[bytes],
    defects: Defects,
    others: Callable[[], None],
) -> None:
    halves = [(connect(victim.port), seed, 1 + n % (len(seed) - 1)) for n, seed in enumerate(seeds)]
    for wire, seed, cut in halves:
        wire.socket.sendall(seed[:cut])

    others()

    for wire, seed, cut in halves:
        wire.socket.sendall(seed[cut:])
        assert wire.receive_frame()[:4] == bytes(4)


def test_a_request_byte_by_byte_is_answered(
    victim: RunningBroker, connect: Callable[..., Any], seeds: list[bytes], defects: Defects
) -> None:
    wire = connect(victim.port)

    for seed in seeds[:3]:
        for at in range(len(seed)):
            wire.socket.sendall(seed[at : at + 1])

    for _ in range(3):
        assert wire.receive_frame()[:4] == bytes(4)


def reset(wire: Any) -> None:
    """Vanish without a word: the broker gets RST, not FIN."""
    wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    wire.close()


def open_connections(broker: RunningBroker) -> int:
    return len(broker.server.service.connections)


@pytest.mark.parametrize("end", ["reset", "close", "half-close"])
@pytest.mark.parametrize("moment", ["in a frame", "while a fetch waits", "before any byte"])
def test_clients_that_vanish_leave_nothing_behind(
    moment: str,
    end: str,
    victim: RunningBroker,
    connect: Callable[..., Any],
    seeds: list[bytes],
    defects: Defects,
    others: Callable[[], None],
    until: Callable[..., Any],
) -> None:
    others()
    before = open_connections(victim)
    service = victim.server.service
    wires = [connect(victim.port) for _ in range(20)]
    for wire in wires:
        if moment == "in a frame":
            wire.socket.sendall(seeds[0][:-1])
        elif moment == "while a fetch waits":
            end_offset = wire.offset_at(WITNESS, 0, -1)
            for _ in range(5):
                wire.send_fetch(WITNESS, 0, end_offset, max_wait_ms=2**31 - 1)
    until(lambda: open_connections(victim) >= before + 20, "they are all there")

    for wire in wires:
        if end == "reset":
            reset(wire)
        elif end == "close":
            wire.close()
        else:
            wire.socket.shutdown(socket.SHUT_WR)

    until(lambda: open_connections(victim) <= before, "the connections are gone")
    # A waiter that outlives its connection would stay until the log grows, maybe for ever.
    until(lambda: service.metrics.fetch_waiters.value == 0, "nobody waits any more")
    others()
