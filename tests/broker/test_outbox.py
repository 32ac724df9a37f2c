import asyncio
import os
import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import uvloop

from headrace.broker.answers import Piece
from headrace.broker.outbox import (
    COPY_BYTES,
    SENDFILE_FROM_BYTES,
    STRETCH_BYTES,
    TURN_BYTES,
    TURN_READS,
    Outbox,
)
from headrace.broker.read_threads import ReadThreads
from headrace.log.access import RESIDENT
from headrace.log.files import OpenFile
from headrace.log.partition_log import FileSlice
from headrace.metrics import Counter

MEGABYTE = 1024 * 1024


class Sender(asyncio.Protocol):
    """A server's side that sends what the test says."""

    def __init__(self) -> None:
        self.bytes_out = Counter()
        self.rooms = 0
        self.breaks = 0
        self.reads = ReadThreads(asyncio.get_running_loop())
        self.outbox = Outbox(
            asyncio.get_running_loop(),
            self.bytes_out,
            self._on_room,
            self._on_broken,
            self.reads,
        )
        self.ready = asyncio.Event()

    def _on_room(self) -> None:
        self.rooms += 1

    def _on_broken(self) -> None:
        self.breaks += 1
        self.transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.outbox.open(transport)
        self.ready.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.outbox.close()
        self.reads.stop()

    def pause_writing(self) -> None:
        self.outbox.pause()

    def resume_writing(self) -> None:
        self.outbox.resume()


async def connected() -> tuple[asyncio.Server, Sender, asyncio.StreamReader, asyncio.StreamWriter]:
    senders: list[Sender] = []

    def make() -> Sender:
        senders.append(Sender())
        return senders[-1]

    server = await asyncio.get_running_loop().create_server(make, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=64 * 1024)
    await senders[0].ready.wait()
    return server, senders[0], reader, writer


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def run(scenario: Callable[[], object]) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(scenario())  # type: ignore[arg-type]


@pytest.fixture
def content() -> bytes:
    return random.Random(1).randbytes(8 * MEGABYTE)


@pytest.fixture
def file(tmp_path: Path, content: bytes) -> OpenFile:
    path = tmp_path / "f"
    path.write_bytes(content)
    return OpenFile(path, os.O_RDONLY)


@pytest.mark.parametrize("size", [1, SENDFILE_FROM_BYTES - 1, SENDFILE_FROM_BYTES, 5 * MEGABYTE])
def test_bytes_and_file_stretches_arrive_in_order(
    file: OpenFile, content: bytes, size: int
) -> None:
    async def scenario() -> None:
        server, sender, reader, writer = await connected()
        pieces: list[Piece] = [b"head", FileSlice(file, 7, size), b"a", b"b", b"tail"]
        expected = b"head" + content[7 : 7 + size] + b"abtail"

        sender.outbox.send(pieces)
        sender.outbox.send(pieces)
        received = await reader.readexactly(2 * len(expected))

        assert received == 2 * expected
        assert sender.outbox.is_empty
        assert sender.bytes_out.value == 2 * len(expected)
        writer.close()
        server.close()

    run(scenario)


def test_a_client_that_does_not_read_blocks_and_holds_little(
    file: OpenFile, content: bytes
) -> None:
    async def scenario() -> None:
        server, sender, reader, writer = await connected()
        writer.transport.pause_reading()
        pieces: list[Piece] = [b"head", FileSlice(file, 0, len(content)), b"tail"]
        for _ in range(20):
            sender.outbox.send(pieces)
        assert sender.outbox.is_blocked
        assert not sender.outbox.is_empty
        assert sender.transport.get_write_buffer_size() <= 2 * COPY_BYTES

        writer.transport.resume_reading()
        expected = b"head" + content + b"tail"
        for _ in range(20):
            assert await reader.readexactly(len(expected)) == expected

        assert sender.rooms >= 1
        writer.close()
        server.close()

    run(scenario)


def test_a_file_that_ends_early_breaks_the_connection(tmp_path: Path) -> None:
    path = tmp_path / "short"
    path.write_bytes(b"x" * 100_000)
    short = OpenFile(path, os.O_RDONLY)

    async def scenario() -> None:
        server, sender, reader, writer = await connected()

        sender.outbox.send([b"head", FileSlice(short, 0, 200_000), b"tail"])
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await reader.readexactly(200_008)

        assert sender.breaks == 1
        writer.close()
        server.close()

    run(scenario)


def test_a_client_that_goes_away_while_a_file_is_sent_leaves_no_descriptor(
    file: OpenFile, content: bytes
) -> None:
    async def scenario() -> None:
        server, sender, _, writer = await connected()
        before = open_descriptors()
        writer.transport.pause_reading()
        sender.outbox.send([FileSlice(file, 0, len(content))] * 20)

        writer.transport.abort()
        while not sender.transport.is_closing():
            await asyncio.sleep(0)
            sender.outbox.send([b"x"])
        # Nothing tells when a transport has closed its descriptor; both ends must.
        while open_descriptors() != before - 2:  # noqa: ASYNC110
            await asyncio.sleep(0)
        server.close()

        assert sender.outbox.is_empty

    run(scenario)


class Disk:
    """A page cache of the test's own: what was not read by a thread is cold."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reads: list[tuple[str, int, int]] = []  # (thread, position, length)
        self.sent_cold = 0
        self._warm: set[int] = set()
        self.gate: threading.Event | None = None
        self.fails = False
        real_preadv, real_pread, real_sendfile = os.preadv, os.pread, os.sendfile

        def preadv(fd: int, buffers: Any, position: int, flags: int = 0) -> int:
            length = sum(len(buffer) for buffer in buffers)
            if flags:
                if not self._has(position, length):
                    raise BlockingIOError(11, "not in memory")
            else:
                if self.gate is not None:
                    self.gate.wait(30)
                if self.fails:
                    raise OSError(5, "bad block")
                self.reads.append((threading.current_thread().name, position, length))
                self._warm.update(range(position // 4096, (position + length - 1) // 4096 + 1))
            return real_preadv(fd, buffers, position)

        def pread(fd: int, length: int, position: int) -> bytes:
            self.sent_cold += not self._has(position, length)
            return real_pread(fd, length, position)

        def sendfile(out: int, fd: int, position: int, length: int) -> int:
            count = real_sendfile(out, fd, position, length)
            self.sent_cold += not self._has(position, count)
            return count

        monkeypatch.setattr(RESIDENT, "can_probe", True)
        monkeypatch.setattr(os, "preadv", preadv)
        monkeypatch.setattr(os, "pread", pread)
        monkeypatch.setattr(os, "sendfile", sendfile)

    def _has(self, position: int, length: int) -> bool:
        pages = range(position // 4096, (position + max(length, 1) - 1) // 4096 + 1)
        return all(page in self._warm for page in pages)


@pytest.mark.parametrize("size", [1, SENDFILE_FROM_BYTES - 1, SENDFILE_FROM_BYTES, 5 * MEGABYTE])
def test_bytes_that_are_not_in_memory_are_read_by_a_thread_before_they_are_sent(
    file: OpenFile, content: bytes, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        server, sender, reader, writer = await connected()
        disk = Disk(monkeypatch)
        pieces: list[Piece] = [b"head", FileSlice(file, 7, size), b"a", b"b", b"tail"]
        expected = b"head" + content[7 : 7 + size] + b"abtail"

        sender.outbox.send(pieces)
        assert sender.outbox.is_blocked
        sender.outbox.send(pieces)
        received = await reader.readexactly(2 * len(expected))

        assert received == 2 * expected
        assert disk.sent_cold == 0
        assert {thread[:5] for thread, _, _ in disk.reads} == {"read-"}
        assert max(length for _, _, length in disk.reads) <= STRETCH_BYTES
        assert sum(length for _, _, length in disk.reads) == size  # and once only
        assert not sender.outbox.is_blocked
        assert sender.rooms >= 1
        writer.close()
        server.close()

    run(scenario)


def test_a_client_that_goes_away_while_a_thread_reads_for_it_harms_nobody(
    file: OpenFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        server, sender, _, writer = await connected()
        disk = Disk(monkeypatch)
        disk.gate = threading.Event()
        sender.outbox.send([FileSlice(file, 0, MEGABYTE)])

        writer.transport.abort()
        while not sender.transport.is_closing():
            await asyncio.sleep(0)
            sender.transport.write(b"x")
        sender.outbox.close()
        disk.gate.set()
        while not disk.reads:  # noqa: ASYNC110
            await asyncio.sleep(0)
        server.close()

        assert sender.outbox.is_empty
        assert sender.breaks == 0

    run(scenario)


def test_a_disk_that_cannot_read_breaks_the_connection(
    file: OpenFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        server, sender, reader, writer = await connected()
        Disk(monkeypatch).fails = True

        sender.outbox.send([b"head", FileSlice(file, 0, MEGABYTE), b"tail"])
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await reader.readexactly(MEGABYTE)

        assert sender.breaks == 1
        writer.close()
        server.close()

    run(scenario)


def test_thousands_of_short_stretches_are_sent_over_several_turns(
    file: OpenFile, content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        server, sender, reader, writer = await connected()
        looks: list[int] = []
        real = RESIDENT.try_read

        def try_read(self: Any, *place: Any) -> Any:
            looks[-1] += 1
            return real(*place)

        monkeypatch.setattr(type(RESIDENT), "try_read", try_read)
        loop = asyncio.get_running_loop()

        def next_turn() -> None:
            looks.append(0)
            if not sender.outbox.is_empty:
                loop.call_soon(next_turn)

        looks.append(0)
        pieces: list[Piece] = [FileSlice(file, 10 * i, 10) for i in range(5000)]
        sender.outbox.send(pieces)
        next_turn()

        assert await reader.readexactly(50_000) == content[:50_000]
        assert sum(looks) == 5000
        assert max(looks) <= TURN_READS
        writer.close()
        server.close()

    run(scenario)


def test_a_reader_as_fast_as_the_loop_does_not_keep_it(
    file: OpenFile, content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        server, sender, _, writer = await connected()
        asked: list[int] = []

        def sendfile(out: int, fd: int, position: int, length: int) -> int:
            asked.append(length)
            return length  # a socket that takes everything

        with monkeypatch.context() as patch:
            patch.setattr(os, "sendfile", sendfile)
            sender.outbox.send([FileSlice(file, 0, len(content))])

        assert sum(asked) == TURN_BYTES < len(content)
        assert sender.outbox.is_blocked
        writer.close()
        server.close()

    run(scenario)
