"""A disk that takes 16 ms for a sync: thousands of requests wait, and none may be harmed by it."""

import contextlib
import resource
import socket
import struct
import subprocess
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from kio.schema.produce.v9.request import PartitionProduceData, ProduceRequest, TopicProduceData

from headrace.testing import broker_process

SYNC_MS = 16
CONNECTIONS = 4
PARTITIONS = 16
KAFKA_STORAGE_ERROR = 56

# Of an answer to Produce v9 for one partition of `flood`: correlation id, error code, base offset.
_ACK = struct.Struct(">i8xx4xhq")


class Flood:
    """One connection that sends without waiting, and what it was promised."""

    def __init__(
        self,
        wire: Any,
        number: int,
        count: int,
        batch: Callable[..., bytes],
        frame: Callable[..., bytes],
    ) -> None:
        self._wire = wire
        self.promised: list[tuple[int, int, bytes]] = []
        self.refused: list[int] = []
        self._values = [
            (at % PARTITIONS, b"%d-%d." % (number, at) + b"v" * (at * 37 % 40))
            for at in range(count)
        ]
        self._frames = b"".join(
            frame(_request(partition, batch([value])), at)
            for at, (partition, value) in enumerate(self._values)
        )
        self._threads = [threading.Thread(target=work) for work in (self._send, self._receive)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def join(self) -> None:
        for thread in self._threads:
            thread.join()

    def _send(self) -> None:
        self._wire.socket.sendall(self._frames)

    def _receive(self) -> None:
        for at, (partition, value) in enumerate(self._values):
            correlation_id, error_code, base_offset = _ACK.unpack_from(self._wire.receive_frame())
            assert correlation_id == at
            if error_code:
                self.refused.append(error_code)
            else:
                self.promised.append((partition, base_offset, value))


def _request(partition: int, batch: bytes) -> ProduceRequest:
    data = PartitionProduceData(index=partition, records=batch)
    topic = TopicProduceData(name="flood", partition_data=(data,))
    return ProduceRequest(acks=-1, timeout=timedelta(seconds=60), topic_data=(topic,))


@pytest.mark.parametrize(("in_flight", "count"), [(20, 3_000), (1_000, 10_000)])
def test_what_a_slow_disk_acknowledges_is_what_was_sent(
    in_flight: int,
    count: int,
    tmp_path: Path,
    connect: Callable[..., Any],
    batch: Callable[..., bytes],
    frame: Callable[..., bytes],
    slow_disk: Any,
) -> None:
    slow_disk.slow_down(SYNC_MS)
    settings = {
        "headrace.connection.inflight.requests.max": in_flight,
        "headrace.debug.checks": True,
    }
    with broker_process(tmp_path, **settings) as broker:
        wire = connect(broker.port)
        assert wire.create_topic("flood", PARTITIONS) == 0
        floods = [
            Flood(connect(broker.port, 120.0), number, count, batch, frame)
            for number in range(CONNECTIONS)
        ]

        for flood in floods:
            flood.start()
        for flood in floods:
            flood.join()

        found = {
            (partition, record.offset): record.value
            for partition in range(PARTITIONS)
            for record in wire.read_all("flood", partition)
        }
        assert [flood.refused for flood in floods] == [[]] * CONNECTIONS
        promised = [one for flood in floods for one in flood.promised]
        wrong = [one for one in promised if found.get(one[:2]) != one[2]]
        assert len(promised) == CONNECTIONS * count
        assert not wrong, f"{len(wrong)} of {len(promised)} acknowledged batches lost or altered"
        assert len(found) == len(promised)


def test_a_retry_after_a_failed_sync_and_a_restart_is_on_the_disk_when_it_is_acknowledged(
    tmp_path: Path,
    connect: Callable[..., Any],
    batch: Callable[..., bytes],
    slow_disk: Any,
) -> None:
    slow_disk.slow_down(0)
    data_dir = tmp_path / "data"
    with broker_process(data_dir) as broker:
        wire = connect(broker.port)
        assert wire.create_topic("t") == 0
        producer_id, epoch = wire.init_producer_id()
        facts = {"producer_id": producer_id, "producer_epoch": epoch}
        assert wire.produce("t", 0, batch([b"one"], **facts, base_sequence=0)).error_code == 0
        slow_disk.break_down()
        retried = batch([b"two"], **facts, base_sequence=1)
        assert wire.produce("t", 0, retried).error_code == KAFKA_STORAGE_ERROR
        broker.terminate()

    slow_disk.heal()
    assert not (data_dir / ".kafka_cleanshutdown").exists()
    assert set((data_dir / ".headrace_failed_syncs").read_text().split()) == {"t-0"}
    with broker_process(data_dir) as broker:
        wire = connect(broker.port)
        ack = wire.produce("t", 0, retried)

        assert (ack.error_code, ack.base_offset) == (0, 1)
        assert wire.values("t") == [b"one", b"two"]
        assert not (data_dir / ".headrace_failed_syncs").exists()
        assert broker.terminate() == 0
    assert (data_dir / ".kafka_cleanshutdown").exists()


@contextlib.contextmanager
def few_files(limit: int) -> Iterator[None]:
    """Processes started meanwhile may open no more files than this, whatever they ask for."""
    real = subprocess.Popen.__init__

    def popen(*arguments: Any, **options: Any) -> None:
        limits = (limit, limit)
        options["preexec_fn"] = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        real(*arguments, **options)

    subprocess.Popen.__init__ = popen  # type: ignore[method-assign]
    try:
        yield
    finally:
        subprocess.Popen.__init__ = real  # type: ignore[method-assign]


def test_segments_rolled_under_acks_1_are_synced_without_being_asked(
    tmp_path: Path,
    connect: Callable[..., Any],
    batch: Callable[..., bytes],
    until: Callable[..., Any],
) -> None:
    rolls = 400
    with few_files(1024), broker_process(tmp_path, log_segment_bytes=1024 * 1024) as broker:
        wire = connect(broker.port)
        settings = {"segment.bytes": 1024 * 1024, "max.message.bytes": 1024 * 1024}
        assert wire.create_topic("t", **settings) == 0
        value = b"v" * 1_000_000
        for _ in range(rolls):
            assert wire.produce("t", 0, batch([value]), acks=1).error_code == 0

        assert wire.produce("t", 0, batch([b"all"])).error_code == 0
        assert wire.produce("t", 0, batch([b"all"])).error_code == 0
        broker.kill()
    # Nobody but the roll asked for it: the recovery point of the next start is behind them all.
    assert len(list((tmp_path / "t-0").glob("*.log"))) > rolls / 2


def test_idle_clients_leave_the_logs_their_descriptors(
    tmp_path: Path, connect: Callable[..., Any], batch: Callable[..., bytes]
) -> None:
    with few_files(1024), broker_process(tmp_path) as broker:
        wire = connect(broker.port)
        for partitions in range(10):
            assert wire.create_topic(f"t-{partitions}", 20) == 0
        with contextlib.ExitStack() as stack:
            for _ in range(1_100):
                with contextlib.suppress(OSError):
                    idle = socket.create_connection(("127.0.0.1", broker.port), 30)
                    stack.callback(idle.close)

            codes = {
                wire.produce(f"t-{topic}", partition, batch([b"v"])).error_code
                for topic in range(10)
                for partition in range(20)
            }

            assert codes == {0}
            assert "the logs need the rest" in broker.stderr_text()
        assert connect(broker.port).values("t-9", 19) == [b"v"]
