"""What the hardship tests share: one way to wait, one raw client, a command line, a free port."""

import contextlib
import os
import random
import shutil
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from kio.index import load_request_schema, load_response_schema
from kio.schema.create_topics.v7.request import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kio.schema.delete_records.v2.request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kio.schema.delete_topics.v6.request import DeleteTopicsRequest, DeleteTopicState
from kio.schema.fetch.v12.request import FetchPartition, FetchRequest, FetchTopic
from kio.schema.init_producer_id.v4.request import InitProducerIdRequest
from kio.schema.list_offsets.v7.request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kio.schema.metadata.v9.request import MetadataRequest
from kio.schema.produce.v9.request import PartitionProduceData, ProduceRequest, TopicProduceData
from kio.serial import entity_reader, entity_writer

import headrace
from bench.build import build_library
from headrace.records.batch import peek_header
from headrace.records.builder import build_batch, numbered
from headrace.records.record import Record, iter_records

API_VERSIONS = 18
EARLIEST, LATEST = -2, -1
# Outside the range the kernel takes from for outgoing connections: a client that retries
# against a dead broker's port could otherwise get that very port and connect to itself.
_PORTS = range(20_000, 30_000)
_POLL_SECONDS = 0.01


def wait_until(condition: Callable[[], Any], what: str, seconds: float = 120.0) -> Any:
    """Return what `condition` returns once that is true; the only place that sleeps."""
    deadline = time.monotonic() + seconds
    while not (result := condition()):
        if time.monotonic() > deadline:
            pytest.fail(f"not within {seconds:.0f} s: {what}")
        time.sleep(_POLL_SECONDS)
    return result


def encode_frame(request: Any, correlation_id: int = 0) -> bytes:
    """A kio request as one frame: length prefix, header, body."""
    header = request.__header_schema__(
        request_api_key=request.__api_key__,
        request_api_version=request.__version__,
        correlation_id=correlation_id,
        client_id="hardship",
    )
    out = BytesIO()
    entity_writer(type(header))(out, header)
    entity_writer(type(request))(out, request)
    return struct.pack(">i", out.tell()) + out.getvalue()


class Wire:
    """One raw connection: whole frames, requests as kio has them, nothing retried."""

    def __init__(self, port: int, timeout: float = 120.0) -> None:
        self.port = port
        self.socket = socket.create_connection(("127.0.0.1", port), timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._sent: list[tuple[int, Any]] = []
        self._next_id = 1

    def close(self) -> None:
        self.socket.close()

    def send(self, request: Any) -> None:
        """Pipeline a request; `receive` returns the answers in the same order."""
        self.socket.sendall(encode_frame(request, self._next_id))
        self._sent.append((self._next_id, request))
        self._next_id += 1

    @property
    def pipelined(self) -> list[Any]:
        """The requests that were sent and not yet answered."""
        return [request for _, request in self._sent]

    def receive(self) -> Any:
        correlation_id, request = self._sent.pop(0)
        frame = self.receive_frame()
        assert struct.unpack_from(">i", frame)[0] == correlation_id
        schema = load_response_schema(request.__api_key__, request.__version__)
        has_tags = request.__flexible__ and request.__api_key__ != API_VERSIONS
        return entity_reader(schema)(frame, 5 if has_tags else 4)[0]

    def ask(self, request: Any) -> Any:
        self.send(request)
        return self.receive()

    def receive_frame(self) -> bytes:
        return self._exactly(struct.unpack(">i", self._exactly(4))[0])

    def _exactly(self, size: int) -> bytes:
        pieces = []
        while size:
            piece = self.socket.recv(min(size, 1 << 20))
            if not piece:
                raise ConnectionError("the broker closed the connection")
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)

    def is_closed(self) -> bool:
        """Wait until the broker closes, whatever it sends before."""
        with contextlib.suppress(ConnectionError):
            while self.socket.recv(1 << 16):
                pass
        return True  # a connection left open makes recv time out instead

    # --- what the tests ask for

    def create_topic(self, name: str, partitions: int = 1, **configs: object) -> Any:
        pairs = {key.replace("_", "."): str(value) for key, value in configs.items()}
        topic = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=1,
            assignments=(),
            configs=tuple(CreatableTopicConfig(name=k, value=v) for k, v in pairs.items()),
        )
        request = CreateTopicsRequest(topics=(topic,), timeout=timedelta(seconds=10))
        return self.ask(request).topics[0].error_code

    def delete_topic(self, name: str) -> Any:
        topic = DeleteTopicState(name=name, topic_id=None)
        request = DeleteTopicsRequest(topics=(topic,), timeout=timedelta(seconds=10))
        return self.ask(request).responses[0].error_code

    def delete_records(self, topic: str, partition: int, offset: int) -> Any:
        asked = DeleteRecordsPartition(partition_index=partition, offset=offset)
        request = DeleteRecordsRequest(
            topics=(DeleteRecordsTopic(name=topic, partitions=(asked,)),),
            timeout=timedelta(seconds=10),
        )
        return self.ask(request).topics[0].partitions[0].error_code

    def topics(self) -> set[str]:
        request = MetadataRequest(
            topics=None,
            allow_auto_topic_creation=False,
            include_cluster_authorized_operations=False,
            include_topic_authorized_operations=False,
        )
        return {topic.name for topic in self.ask(request).topics}

    def send_batch(self, topic: str, partition: int, batch: bytes, acks: int = -1) -> None:
        data = PartitionProduceData(index=partition, records=bytes(batch))
        topic_data = TopicProduceData(name=topic, partition_data=(data,))
        self.send(
            ProduceRequest(acks=acks, timeout=timedelta(seconds=10), topic_data=(topic_data,))
        )

    def receive_ack(self) -> Any:
        return self.receive().responses[0].partition_responses[0]

    def produce(self, topic: str, partition: int, batch: bytes, acks: int = -1) -> Any:
        self.send_batch(topic, partition, batch, acks)
        return self.receive_ack()

    def produce_values(self, topic: str, *values: bytes, partition: int = 0) -> Any:
        return self.produce(topic, partition, a_batch(values))

    def send_fetch(
        self,
        topic: str,
        partition: int,
        offset: int,
        max_bytes: int = 1 << 24,
        *,
        max_wait_ms: int = 0,
    ) -> None:
        asked = FetchPartition(
            partition=partition, fetch_offset=offset, partition_max_bytes=max_bytes
        )
        self.send(
            FetchRequest(
                replica_id=-1,
                max_wait=timedelta(milliseconds=max_wait_ms),
                min_bytes=1,
                max_bytes=max_bytes,
                isolation_level=0,
                topics=(FetchTopic(topic=topic, partitions=(asked,)),),
                forgotten_topics_data=(),
            )
        )

    def fetch(self, topic: str, partition: int, offset: int, max_bytes: int = 1 << 24) -> Any:
        self.send_fetch(topic, partition, offset, max_bytes)
        return self.receive().responses[0].partitions[0]

    def offset_at(self, topic: str, partition: int, timestamp: int) -> int:
        asked = ListOffsetsPartition(partition_index=partition, timestamp=timestamp)
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=0,
            topics=(ListOffsetsTopic(name=topic, partitions=(asked,)),),
        )
        found = self.ask(request).topics[0].partitions[0]
        assert found.error_code == 0, found
        return int(found.offset)

    def init_producer_id(self) -> tuple[int, int]:
        request = InitProducerIdRequest(
            transactional_id=None,
            transaction_timeout=timedelta(seconds=60),
            producer_id=-1,
            producer_epoch=-1,
        )
        answer = self.ask(request)
        assert answer.error_code == 0
        return answer.producer_id, answer.producer_epoch

    def read_all(self, topic: str, partition: int = 0, start: int | None = None) -> list[Record]:
        """Every record from `start` (or the log's start) to the log's end."""
        offset = self.offset_at(topic, partition, EARLIEST) if start is None else start
        end = self.offset_at(topic, partition, LATEST)
        records: list[Record] = []
        while offset < end:
            answer = self.fetch(topic, partition, offset)
            assert answer.error_code == 0, f"{topic}-{partition} at {offset}: {answer.error_code}"
            assert answer.records, f"{topic}-{partition} has nothing at {offset} of {end}"
            records += (one for one in records_in(answer.records) if one.offset >= offset)
            offset = records[-1].offset + 1
        return records

    def check_served(self, topic: str = "witness") -> None:
        """Fail unless a message goes in and comes back."""
        ack = self.produce_values(topic, b"still there")
        assert ack.error_code == 0
        answer = self.fetch(topic, 0, ack.base_offset)
        assert answer.error_code == 0
        assert [record.value for record in records_in(answer.records)] == [b"still there"]

    def values(self, topic: str, partition: int = 0) -> list[bytes | None]:
        return [record.value for record in self.read_all(topic, partition)]


def records_in(data: bytes) -> list[Record]:
    records: list[Record] = []
    position = 0
    while header := peek_header(data, position):
        batch = data[position : position + header.size]
        if len(batch) < header.size:
            break
        records += iter_records(batch)
        position += header.size
    return records


def a_batch(values: Any, **facts: Any) -> bytes:
    """One batch of these values, with the time of now."""
    timestamp = facts.pop("timestamp", int(time.time() * 1000))
    records = numbered(values, timestamp=timestamp, key=facts.pop("key", None))
    return bytes(build_batch(records, **facts))


def run_headrace(*arguments: object, prefix: tuple[str, ...] = ()) -> Any:
    """Run the command line to its end and return what it did."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("HEADRACE_")}
    environment["PYTHONPATH"] = str(Path(headrace.__file__).parents[1])
    command = [*prefix, sys.executable, "-m", "headrace", *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=180, env=environment, check=False
    )


@pytest.fixture
def until() -> Callable[..., Any]:
    return wait_until


@pytest.fixture
def headrace_command() -> Callable[..., Any]:
    return run_headrace


@pytest.fixture
def batch() -> Callable[..., bytes]:
    return a_batch


@pytest.fixture
def batch_records() -> Callable[[bytes], list[Record]]:
    return records_in


@pytest.fixture
def connect() -> Iterator[Callable[..., Wire]]:
    """`connect(port)`: a raw client, closed when the test ends."""
    with contextlib.ExitStack() as stack:

        def open_wire(port: int, timeout: float = 120.0) -> Wire:
            wire = Wire(port, timeout)
            stack.callback(wire.close)
            return wire

        yield open_wire


@pytest.fixture
def port() -> int:
    """A port nobody has, for a broker that must come back on it."""
    for candidate in random.sample(_PORTS, 50):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", candidate))
            return candidate
    pytest.fail("no free port")


@pytest.fixture(scope="session")
def frame() -> Callable[..., bytes]:
    return encode_frame


@pytest.fixture(scope="session")
def request_schema() -> Callable[[int, int], Any]:
    return load_request_schema


class SlowDisk:
    """What brokers started from now on find under them: a disk that is slow, or breaks."""

    def __init__(self, library: Path, monkeypatch: pytest.MonkeyPatch, failure: Path) -> None:
        self._library, self._monkeypatch, self._failure = library, monkeypatch, failure

    def slow_down(self, ms: int) -> None:
        self._monkeypatch.setenv("LD_PRELOAD", str(self._library))
        self._monkeypatch.setenv("SLOW_DISK_MS", str(ms))
        self._monkeypatch.setenv("SLOW_DISK_FAILS", str(self._failure))

    def break_down(self) -> None:
        """From now on every sync fails, also of brokers that are running."""
        self._failure.touch()

    def heal(self) -> None:
        self._failure.unlink()


@pytest.fixture
def slow_disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> SlowDisk:
    if not (shutil.which("cc") or shutil.which("gcc")):
        pytest.skip("a slow disk needs a C compiler")
    return SlowDisk(build_library("slow_disk"), monkeypatch, tmp_path / "the-disk-is-broken")
