"""A connection over a fake transport: what it lends out, what it holds back, whom it lets go."""

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from kio.schema.describe_log_dirs.v4.request import DescribeLogDirsRequest
from kio.schema.produce.v9.request import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.hardship.conftest import encode_frame

from headrace.broker import connection as connection_module
from headrace.broker import service as service_module
from headrace.broker.connection import ClientConnection
from headrace.broker.server import Server
from headrace.log import checkpoints
from headrace.log.files import OpenFile
from headrace.records.batch import peek_header
from headrace.records.builder import build_batch
from headrace.records.record import Record, iter_records
from headrace.settings.broker_settings import BrokerSettings


class FakeTransport:
    """Takes what it is given; the test says when there is something to read."""

    def __init__(self) -> None:
        self.written = bytearray()
        self.is_reading = True
        self.is_aborted = False

    def write(self, data: bytes) -> None:
        self.written += data

    def get_extra_info(self, name: str) -> Any:
        return ("127.0.0.1", 1) if name == "peername" else None

    def set_write_buffer_limits(self, **_: int) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None:
        self.is_reading = False

    def resume_reading(self) -> None:
        self.is_reading = True

    def abort(self) -> None:
        self.is_aborted = True

    def close(self) -> None:
        pass


class Stage:
    """A broker whose sockets are fakes."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.service = server.service

    def connect(self) -> tuple[ClientConnection, FakeTransport]:
        connection, transport = ClientConnection(self.service), FakeTransport()
        connection.connection_made(transport)  # type: ignore[arg-type]
        return connection, transport

    def values(self, topic: str, partition: int = 0) -> list[bytes | None]:
        log = self.service.broker.topics.log(topic, partition)
        found: list[bytes | None] = []
        while slices := log.read(len(found), 1 << 20):
            for one in slices:
                data = os.pread(one.file.fd, one.length, one.position)
                at = 0
                while (header := peek_header(data, at)) is not None:
                    found += [r.value for r in iter_records(data[at : at + header.size])]
                    at += header.size
        return found


def receive(connection: ClientConnection, data: bytes) -> None:
    """One read of the socket."""
    room = connection.get_buffer(-1)
    assert len(room) >= len(data)
    room[: len(data)] = data
    connection.buffer_updated(len(data))


def produce(value: bytes, partition: int = 0, acks: int = -1) -> bytes:
    batch = bytes(build_batch([Record(0, 1_700_000_000_000, None, value, [])]))
    data = PartitionProduceData(index=partition, records=batch)
    topic = TopicProduceData(name="t", partition_data=(data,))
    return encode_frame(
        ProduceRequest(acks=acks, timeout=timedelta(seconds=10), topic_data=(topic,))
    )


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., None]:
    """`run(scenario)`: a coroutine function that gets the stage, on a broker with topic `t`."""

    def run(scenario: Callable[[Stage], Awaitable[None]], **settings: str) -> None:
        named = {name.replace("_", "."): value for name, value in settings.items()}
        named |= {"listeners": "PLAINTEXT://127.0.0.1:0", "headrace.debug.checks": "true"}

        async def life() -> None:
            server = Server(BrokerSettings.load(overrides=named), tmp_path / "data")
            await server.start()
            await server.service.broker.topics.create("t", 4, {})
            try:
                await scenario(Stage(server))
            finally:
                await server.stop()

        asyncio.run(life())

    return run


async def turns(count: int = 3) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def test_a_sync_that_ends_lets_nobody_write_over_what_is_staged_since(
    run: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(stage: Stage) -> None:
        connection, _ = stage.connect()
        waiting: list[Any] = []
        monkeypatch.setattr(stage.service.sync, "wait", lambda log, done: waiting.append(done))
        receive(connection, produce(b"zeroth"))  # the next ones have its shape
        await turns()
        receive(connection, produce(b"first"))
        await turns()
        assert len(waiting) == 2

        # Two of them in one read: alone, the second would be written before the read ends.
        receive(connection, produce(b"second") + produce(b"third", partition=1))
        waiting[1](None)  # the disk has the first
        receive(connection, b"\0" * 3 + b"\xff" * 3_000)
        await turns()

        assert stage.values("t") == [b"zeroth", b"first", b"second"]
        assert stage.values("t", 1) == [b"third"]

    run(scenario)


def test_what_was_staged_before_an_exception_is_written_as_it_was(
    run: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(stage: Stage) -> None:
        connection, transport = stage.connect()
        two = [
            TopicProduceData(
                name="t",
                partition_data=tuple(
                    PartitionProduceData(
                        index=partition,
                        records=bytes(build_batch([Record(0, 1_700_000_000_000, None, b"v", [])])),
                    )
                    for partition in (0, 1)
                ),
            )
        ]
        broken = stage.service.broker.topics.log("t", 1)
        monkeypatch.setattr(
            type(broken),
            "stage",
            _failing_for(broken, type(broken).stage),
        )

        receive(
            connection,
            encode_frame(
                ProduceRequest(acks=1, timeout=timedelta(seconds=1), topic_data=tuple(two))
            ),
        )
        assert transport.is_aborted
        await turns()

        assert stage.values("t") == [b"v"]

    run(scenario)


def _failing_for(broken: Any, stage: Any) -> Any:
    def failing(log: Any, *arguments: Any) -> Any:
        if log is broken:
            raise ZeroDivisionError("a defect of ours")
        return stage(log, *arguments)

    return failing


def test_a_held_connection_serves_nothing_until_it_goes_on(run: Callable[..., None]) -> None:
    async def scenario(stage: Stage) -> None:
        connection, transport = stage.connect()
        receive(connection, produce(b"one"))
        await turns()
        connection.hold()

        receive(connection, produce(b"two") + produce(b"three"))
        await turns()
        held = stage.values("t")
        is_reading = transport.is_reading
        connection.go_on()
        await turns()

        assert (held, is_reading) == ([b"one"], False)
        assert stage.values("t") == [b"one", b"two", b"three"]
        assert transport.is_reading

    run(scenario)


def test_a_wall_clock_that_jumps_closes_no_quiet_connection(
    run: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(stage: Stage) -> None:
        _, transport = stage.connect()
        day_ms = 86_400_000
        real = stage.service.broker.now_ms
        monkeypatch.setattr(type(stage.service.broker), "now_ms", lambda *_: real() + day_ms)
        monkeypatch.setattr(stage.service.broker.clock, "now_ms", lambda: real() + day_ms)

        stage.service.sweep_idle(stage.service.steady_ms(), 5_000)
        was_closed = transport.is_aborted
        stage.service.broker.clock.advance(day_ms)
        stage.service.sweep_idle(stage.service.steady_ms(), 5_000)

        assert not was_closed
        assert transport.is_aborted

    run(scenario)


@pytest.mark.parametrize(("bytes_per_second", "is_let_go"), [(10, True), (100_000, False)])
def test_who_trickles_into_a_large_request_is_let_go_when_memory_is_short(
    bytes_per_second: int, is_let_go: bool, run: Callable[..., None]
) -> None:
    async def scenario(stage: Stage) -> None:
        connection, transport = stage.connect()
        frame = (50 * 2**20).to_bytes(4, "big") + b"x" * 60_000
        receive(connection, frame)
        assert connection_module.STALLED_MS == 5_000

        for _ in range(10):
            stage.service.broker.clock.advance(1_000)
            receive(connection, b"y" * min(bytes_per_second, len(connection.get_buffer(-1))))
            stage.service.drop_stalled()

        assert transport.is_aborted is is_let_go

    run(scenario)


def test_two_who_hold_a_connection_must_both_let_it_go_on(run: Callable[..., None]) -> None:
    async def scenario(stage: Stage) -> None:
        connection, _ = stage.connect()
        connection.hold()
        connection.hold()
        receive(connection, produce(b"held"))
        connection.go_on()
        await turns()
        held = stage.values("t")
        connection.go_on()
        await turns(20)

        assert held == []
        assert stage.values("t") == [b"held"]

    run(scenario)


def test_who_waits_for_memory_is_not_read_from_by_an_older_wake_up(
    run: Callable[..., None],
) -> None:
    async def scenario(stage: Stage) -> None:
        connection, transport = stage.connect()
        connection._pause()
        connection._maybe_go_on()
        connection._wait_for_memory()
        await turns()

        assert not transport.is_reading
        connection.connection_lost(None)

    run(scenario)


def test_a_sync_that_fails_while_the_broker_stops_leaves_no_clean_marker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_fail, is_syncing = threading.Event(), threading.Event()
    real = OpenFile.sync

    def fail_late(file: OpenFile) -> None:
        if threading.current_thread().name.startswith("sync-"):
            is_syncing.set()
            assert may_fail.wait(60)
            raise OSError(5, "Input/output error")
        real(file)

    monkeypatch.setattr(OpenFile, "sync", fail_late)
    data_dir = tmp_path / "data"

    async def life() -> None:
        overrides = {"listeners": "PLAINTEXT://127.0.0.1:0"}
        server = Server(BrokerSettings.load(overrides=overrides), data_dir)
        await server.start()
        await server.service.broker.topics.create("t", 1, {})
        connection, _ = Stage(server).connect()
        receive(connection, produce(b"v"))
        assert await asyncio.to_thread(is_syncing.wait, 60)
        # The loop stands while the stop waits for this thread.
        threading.Timer(0.5, may_fail.set).start()
        await server.stop(drain_seconds=0)

    asyncio.run(life())

    assert not (data_dir / checkpoints.CLEAN_SHUTDOWN).exists()
    assert checkpoints.read_failed_syncs(data_dir) == {"t-0"}


def test_requests_that_lie_in_the_buffer_are_served_in_turns(
    run: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(stage: Stage) -> None:
        monkeypatch.setattr(service_module, "TURN_SECONDS", 0.0)
        connection, transport = stage.connect()
        receive(connection, produce(b"first"))
        await turns()

        receive(connection, b"".join(produce(b"%d" % at) for at in range(100)))
        stage.service.committer.flush()
        served_at_once = len(stage.values("t")) - 1
        is_reading = transport.is_reading
        await turns(60)

        assert served_at_once < 50
        assert not is_reading
        assert stage.values("t")[1:] == [b"%d" % at for at in range(100)]
        assert transport.is_reading

    run(scenario)


def test_what_a_client_asked_for_and_did_not_wait_for_is_not_gone_on_with(
    run: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(stage: Stage) -> None:
        connection, _ = stage.connect()
        is_asked = asyncio.Event()
        is_cancelled = asyncio.Event()

        async def endless(*_: Any) -> None:
            is_asked.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                is_cancelled.set()
                raise

        monkeypatch.setattr("headrace.broker.handlers.describe_log_dirs.handle", endless)
        receive(connection, encode_frame(DescribeLogDirsRequest(topics=None)))
        await asyncio.wait_for(is_asked.wait(), 60)

        connection.connection_lost(None)

        await asyncio.wait_for(is_cancelled.wait(), 60)

    run(scenario)
