"""Fetch beside others: bounded, in slices, nothing from the disk on the event loop."""

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import Any, NamedTuple

import pytest
from kio.schema.errors import ErrorCode
from tests.hardship.conftest import wait_until

from headrace.broker import fetch_reader
from headrace.broker.fetch_answers import STEP_PARTITIONS
from headrace.broker.fetch_reader import FetchReader
from headrace.broker.handlers import fetch as fetch_handler
from headrace.broker.handlers.fetch import PendingFetch
from headrace.broker.turns import Turn
from headrace.log.access import RESIDENT, NotReadyError, Warm
from headrace.log.segment_check import SegmentSnapshot
from headrace.records.batch import peek_header
from headrace.records.builder import build_batch, numbered
from headrace.testing import RunningBroker, running_broker

MANY = 3 * STEP_PARTITIONS
TOPIC = "t"


class Answer(NamedTuple):
    error: int
    session_id: int
    partitions: dict[int, tuple[int, int, bytes]]  # (error, high watermark, records)


class Client:
    """Fetch v11 (or another before it was flexible) by hand."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), 60)
        self._stream = self.socket.makefile("rb")

    def close(self) -> None:
        self._stream.close()
        self.socket.close()

    def send(
        self,
        partitions: Any = (),
        *,
        session: tuple[int, int] = (0, -1),
        wait_ms: int = 0,
        min_bytes: int = 1,
        max_bytes: int = 1 << 25,
        version: int = 11,
    ) -> None:
        """`partitions`: (partition, offset, max bytes), or (partition, offset)."""
        body = struct.pack(">iiiib", -1, wait_ms, min_bytes, max_bytes, 0)
        if version >= 7:
            body += struct.pack(">ii", *session)
        rows = [(*one, 1 << 20)[:3] for one in partitions]
        if rows:
            body += struct.pack(">ihc", 1, 1, TOPIC.encode()) + struct.pack(">i", len(rows))
            if version >= 9:
                body += b"".join([struct.pack(">iiqqi", p, -1, o, -1, m) for p, o, m in rows])
            else:
                body += b"".join([struct.pack(">iqi", p, o, m) for p, o, m in rows])
        else:
            body += struct.pack(">i", 0)
        if version >= 7:
            body += struct.pack(">i", 0)
        if version >= 11:
            body += struct.pack(">h", 0)
        head = struct.pack(">hhih", 1, version, 7, -1)
        self.socket.sendall(struct.pack(">i", len(head) + len(body)) + head + body)

    def receive(self) -> Answer:
        size = self._stream.read(4)
        if not size:
            raise ConnectionError("closed")
        data = self._stream.read(struct.unpack(">i", size)[0])
        error, session_id, topics = struct.unpack_from(">hii", data, 8)
        at, found = 18, {}
        for _ in range(topics):
            at += 3
            count = struct.unpack_from(">i", data, at)[0]
            at += 4
            for _ in range(count):
                partition, code, end = struct.unpack_from(">ihq", data, at)
                length = struct.unpack_from(">i", data, at + 38)[0]
                at += 42
                found[partition] = (code, end, data[at : at + max(length, 0)])
                at += max(length, 0)
        return Answer(error, session_id, found)

    def ask(self, partitions: Any = (), **options: Any) -> Answer:
        self.send(partitions, **options)
        return self.receive()


def create(broker: RunningBroker, partitions: int) -> None:
    async def make() -> None:
        await broker.server.service.broker.topics.create(TOPIC, partitions, {})

    broker.run(make)


def append(broker: RunningBroker, *partitions: int, size: int = 10) -> None:
    async def add() -> None:
        for partition in partitions:
            append_here(broker, partition, size)

    broker.run(add)


def append_here(broker: RunningBroker, partition: int, size: int = 10) -> None:
    service = broker.server.service
    log = service.broker.topics.log(TOPIC, partition)
    batch = build_batch(numbered([b"v" * size]))
    header = peek_header(batch)
    assert header is not None
    log.stage(memoryview(batch), header, service.broker.now_ms())
    log.commit(service.broker.now_ms())
    service.waiting.notify(log, len(batch))


@pytest.fixture
def broker() -> Iterator[RunningBroker]:
    with running_broker() as broker:
        yield broker


@pytest.fixture
def connect(broker: RunningBroker) -> Iterator[Callable[[], Client]]:
    with ExitStack() as stack:
        yield lambda: stack.enter_context(closing(Client(broker.port)))


@pytest.fixture
def client(connect: Callable[[], Client]) -> Client:
    return connect()


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The partitions that were looked at."""
    seen: list[int] = []
    real = FetchReader._look

    def look(self: FetchReader, one: Any, *rest: Any) -> None:
        seen.append(one.partition)
        real(self, one, *rest)

    monkeypatch.setattr(FetchReader, "_look", look)
    return seen


@pytest.fixture
def tasks(monkeypatch: pytest.MonkeyPatch) -> list[PendingFetch]:
    """The fetches that became tasks, once for each time."""
    seen: list[PendingFetch] = []
    real = PendingFetch._run_on

    def run_on(self: PendingFetch, *rest: Any) -> Any:
        seen.append(self)
        return real(self, *rest)

    monkeypatch.setattr(PendingFetch, "_run_on", run_on)
    return seen


@pytest.fixture
def breaths(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    seen: list[None] = []
    real = Turn.breathe

    async def breathe(self: Turn) -> None:
        seen.append(None)
        await real(self)

    monkeypatch.setattr(Turn, "breathe", breathe)
    return seen


# --- bounds


def test_a_million_partitions_are_refused_and_none_is_looked_at(
    broker: RunningBroker, looks: list[int], client: Client
) -> None:
    create(broker, 3)

    answer = client.ask([(p, 0) for p in range(1_000_000)], session=(0, 0))

    assert answer == (ErrorCode.invalid_request, 0, {})
    assert looks == []
    assert len(broker.server.service.sessions) == 0
    assert client.ask([(0, 0)]).partitions[0][0] == 0


def test_before_answers_had_an_error_such_a_request_closes_the_connection(
    broker: RunningBroker, client: Client
) -> None:

    client.send([(p, 0) for p in range(100_000)], version=4)

    with pytest.raises(ConnectionError):
        client.receive()


def test_partitions_that_were_deleted_just_now_may_all_be_named(
    broker: RunningBroker, client: Client
) -> None:
    answer = client.ask([(p, 0) for p in range(fetch_handler.SPARE_PARTITIONS)])

    codes = {code for code, _, _ in answer.partitions.values()}
    assert codes == {ErrorCode.unknown_topic_or_partition}
    assert len(answer.partitions) == fetch_handler.SPARE_PARTITIONS


def test_a_session_beyond_the_room_for_all_sessions_is_not_made(
    broker: RunningBroker, client: Client
) -> None:
    create(broker, 20)
    broker.server.service.sessions._max_partitions = 15

    assert client.ask([(p, 0) for p in range(16)], session=(0, 0)).session_id == 0
    session_id = client.ask([(p, 0) for p in range(10)], session=(0, 0)).session_id
    assert session_id != 0
    grown = client.ask([(p, 0) for p in range(20)], session=(session_id, 1))

    assert grown.error == ErrorCode.fetch_session_id_not_found
    assert broker.server.service.sessions.partition_count == 0


@pytest.mark.parametrize("number", [-1, -(2**31), 2**31 - 1])
def test_absurd_numbers_do_no_harm(broker: RunningBroker, number: int, client: Client) -> None:
    create(broker, 2)
    append(broker, 0, 1, size=1000)
    wait_ms = min(number, 0)

    answer = client.ask(
        [(0, 0, number), (0, 0, number), (1, number, 10), (number, 0, 10)],
        wait_ms=wait_ms,
        min_bytes=number,
        max_bytes=number,
    )

    assert answer.error == 0
    assert answer.partitions[1][0] == ErrorCode.offset_out_of_range
    assert answer.partitions[number][0] == ErrorCode.unknown_topic_or_partition


def test_more_than_may_be_sent_is_not_waited_for(broker: RunningBroker, client: Client) -> None:
    create(broker, 1)
    append(broker, 0, 0, size=5000)

    answer = client.ask([(0, 0)], wait_ms=2_000_000, min_bytes=1 << 30, max_bytes=100)

    assert answer.partitions[0][2]


def test_the_same_partition_many_times_is_waited_for_once(
    broker: RunningBroker, client: Client
) -> None:
    create(broker, 1)
    client.send([(0, 0)] * 1000, wait_ms=50_000)
    wait_for_waiters(broker, 1)

    waiting = broker.server.service.waiting
    assert sum(map(len, waiting._waiters.values())) == 1
    assert waiting.places == 1000  # it takes the memory of so many
    append(broker, 0)

    assert client.receive().partitions[0][2]
    assert waiting.places == 0


def test_unknown_partitions_of_a_waiting_fetch_count_as_places(
    broker: RunningBroker, client: Client
) -> None:
    create(broker, 1)
    client.send([(partition, 0) for partition in range(500)], wait_ms=50_000)
    wait_for_waiters(broker, 1)
    waiting = broker.server.service.waiting
    taken = waiting.places
    append(broker, 0)
    client.receive()

    assert taken == 500
    assert waiting.places == 0


def test_a_client_that_goes_while_its_large_fetch_waits_is_noticed(
    broker: RunningBroker, client: Client
) -> None:
    create(broker, 1000)
    client.send([(partition, 0) for partition in range(1000)], wait_ms=2**31 - 1)
    wait_for_waiters(broker, 1)
    service = broker.server.service

    client.close()

    wait_until(lambda: service.metrics.fetch_waiters.value == 0, "the fetch is forgotten", 60)
    assert service.waiting.places == 0


def wait_for_waiters(broker: RunningBroker, count: int) -> None:
    waiters = broker.server.service.metrics.fetch_waiters
    while waiters.value < count:

        async def turn() -> None:
            pass

        broker.run(turn)


# --- slices


def test_a_common_fetch_makes_no_task(
    broker: RunningBroker,
    tasks: list[PendingFetch],
    monkeypatch: pytest.MonkeyPatch,
    client: Client,
) -> None:
    monkeypatch.setattr(fetch_reader, "STEP_SECONDS", 3600.0)  # whatever else this machine does
    create(broker, 50)
    append(broker, *range(50))

    assert len(client.ask([(p, 0) for p in range(50)]).partitions) == 50
    client.send([(p, 1) for p in range(50)], session=(0, 0), wait_ms=50_000)
    wait_for_waiters(broker, 1)
    append(broker, 7)
    answer = client.receive()
    assert answer.partitions[7][2]
    client.send([(7, 2)], session=(answer.session_id, 1), wait_ms=50_000)
    wait_for_waiters(broker, 1)
    append(broker, 9)

    assert list(client.receive().partitions) == [9]
    assert tasks == []


def test_a_large_fetch_lets_others_have_the_loop(
    broker: RunningBroker, breaths: list[None], tasks: list[PendingFetch], client: Client
) -> None:
    create(broker, MANY)
    append(broker, 5, MANY - 1)

    answer = client.ask([(p, 0) for p in range(MANY)], session=(0, 0))

    assert len(answer.partitions) == MANY
    assert [p for p, (_, _, data) in answer.partitions.items() if data] == [5, MANY - 1]
    assert len(tasks) == 1
    # Read, taken in, answered; what is read goes by the clock.
    assert len(breaths) >= 3 * (MANY // STEP_PARTITIONS)


def test_a_woken_session_looks_only_at_what_grew(
    broker: RunningBroker, looks: list[int], client: Client
) -> None:
    create(broker, MANY)
    session_id = client.ask([(p, 0) for p in range(MANY)], session=(0, 0)).session_id
    client.send(session=(session_id, 1), wait_ms=50_000)
    wait_for_waiters(broker, 1)
    assert len(looks) == 2 * MANY
    looks.clear()

    append(broker, 123)
    answer = client.receive()

    assert looks == [123]
    assert list(answer.partitions) == [123]
    assert answer.partitions[123][2]
    assert broker.server.service.waiting.places == 0


def test_a_full_fetch_that_waited_answers_for_all_partitions(
    broker: RunningBroker, client: Client
) -> None:
    create(broker, MANY)
    client.send([(p, 0) for p in range(MANY)], wait_ms=50_000)
    wait_for_waiters(broker, 1)

    append(broker, 17)
    answer = client.receive()

    assert len(answer.partitions) == MANY
    assert answer.partitions[17][2]


@pytest.mark.parametrize("epoch", [0, 1])
def test_what_grows_between_the_slices_is_not_missed(
    broker: RunningBroker, monkeypatch: pytest.MonkeyPatch, epoch: int, client: Client
) -> None:
    create(broker, MANY)
    partitions = [(p, 0) for p in range(MANY)]
    session_id = client.ask(partitions, session=(0, 0)).session_id if epoch else 0
    real = FetchReader.read
    appended = []

    def read(self: FetchReader, *rest: Any) -> Any:
        yield from real(self, *rest)
        if not appended:
            appended.append(1)
            yield None
            append_here(broker, 3)  # looked at already, and not yet waited for

    monkeypatch.setattr(FetchReader, "read", read)
    answer = client.ask(() if epoch else partitions, session=(session_id, epoch), wait_ms=2_000_000)

    assert answer.partitions[3][2]


def test_requests_behind_a_large_fetch_wait_for_it(
    broker: RunningBroker, tasks: list[PendingFetch], client: Client
) -> None:
    create(broker, MANY)
    for _ in range(5):
        client.send([(p, 0) for p in range(MANY)])

    sizes = [len(client.receive().partitions) for _ in range(5)]

    assert sizes == [MANY] * 5
    assert len(tasks) == 5


def test_a_client_that_goes_away_leaves_nothing_waiting(
    broker: RunningBroker, looks: list[int], connect: Callable[[], Client]
) -> None:
    create(broker, MANY)
    for is_waiting in (True, False):
        client = connect()
        looks.clear()
        client.send([(p, 0) for p in range(MANY)], wait_ms=50_000)
        if is_waiting:
            wait_for_waiters(broker, 1)
        else:
            while not looks:
                pass
        broker.disconnect_all()
        with pytest.raises((ConnectionError, OSError)):
            client.receive()

        async def places() -> int:
            return broker.server.service.waiting.places

        while broker.run(places):
            pass
        assert broker.server.service.metrics.fetch_waiters.value == 0


def test_where_too_many_wait_a_fetch_looks_again_after_a_while(
    broker: RunningBroker, monkeypatch: pytest.MonkeyPatch, client: Client
) -> None:
    monkeypatch.setattr("headrace.broker.waiting_fetches.MAX_PLACES", 0)
    create(broker, 1)

    answer = client.ask([(0, 0)], wait_ms=2_000_000)

    assert answer.partitions[0][:2] == (0, 0)


# --- the disk


def test_after_a_restart_first_reads_are_checked_by_threads_not_by_the_loop(
    broker: RunningBroker, monkeypatch: pytest.MonkeyPatch, connect: Callable[[], Client]
) -> None:
    create(broker, 2)
    for _ in range(30):
        append(broker, 0, 1, size=100_000)
    broker.restart()
    threads: list[str] = []
    real = SegmentSnapshot.scan

    def scan(self: SegmentSnapshot, start: int, end: int) -> int:
        threads.append(threading.current_thread().name)
        return real(self, start, end)

    monkeypatch.setattr(SegmentSnapshot, "scan", scan)
    client = connect()

    received: dict[int, int] = {0: 0, 1: 0}
    while sum(received.values()) < 60:
        answer = client.ask([(p, offset, 1 << 25) for p, offset in received.items()])
        for partition, (code, _, data) in answer.partitions.items():
            assert code == 0
            received[partition] += data.count(b"v" * 100_000)

    assert {name[:5] for name in threads} == {"read-"}


def test_pages_that_are_not_in_memory_are_waited_for_by_a_thread(
    broker: RunningBroker, monkeypatch: pytest.MonkeyPatch, client: Client
) -> None:
    create(broker, 1)
    append(broker, *([0] * 5), size=100)
    cold = ["first", "second"]
    real = type(RESIDENT).pread

    def pread(self: Any, file: Any, length: int, position: int) -> Any:
        if cold:
            cold.pop()
            raise NotReadyError(Warm(file, position, length))
        return real(self, file, length, position)

    monkeypatch.setattr(type(RESIDENT), "pread", pread)

    answer = client.ask([(0, 3)])

    assert answer.partitions[0][2]
    assert not cold


def test_a_disk_that_fails_while_a_thread_reads_is_a_storage_error(
    broker: RunningBroker, monkeypatch: pytest.MonkeyPatch, client: Client
) -> None:
    create(broker, 1)
    append(broker, 0, 0, 0)

    def fail(self: Any) -> None:
        raise OSError(5, "bad block")

    def not_there(self: Any, file: Any, length: int, position: int) -> Any:
        raise NotReadyError(Warm(file, position, length))

    monkeypatch.setattr(type(RESIDENT), "pread", not_there)
    monkeypatch.setattr("headrace.log.verifying.Warming.run", fail)

    answer = client.ask([(0, 1)])

    assert answer.partitions[0][0] == ErrorCode.kafka_storage_error
