"""Raw connections of those who misbehave, and the account of what each of them got."""

import dataclasses
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self

from kio.index import load_response_schema
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader

from bench.stalls.frames import Frame

_PATIENCE_S = 120.0
_READ_BYTES = 1 << 20
# Answers above this are counted by their size; kio would read them for minutes.
_MAX_READ_ANSWER_BYTES = 1024 * 1024
_SIZE = struct.Struct(">i")


@dataclass(slots=True)
class CulpritAccount:
    """What the culprits of one load got. Filled by several threads."""

    answers: Counter[str] = field(default_factory=Counter)  # Kafka's error names
    requests: int = 0
    answered: int = 0
    closed: int = 0  # connections that the broker closed
    unanswered: int = 0  # after two minutes of patience
    sent_bytes: int = 0
    received_bytes: int = 0
    slowest_seconds: float = 0
    notes: list[str] = field(default_factory=list)
    facts: dict[str, float] = field(default_factory=dict)  # the notes' figures by name
    # Most answers are the same again: each is kept once, with how often it came.
    _unread: Counter[tuple[int, int, bytes]] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add_answer(self, frame: Frame, answer: bytes, seconds: float) -> None:
        with self._lock:
            self.answered += 1
            self.received_bytes += len(answer)
            self.slowest_seconds = max(self.slowest_seconds, seconds)
            if len(answer) <= _MAX_READ_ANSWER_BYTES:
                self._unread[frame.api_key, frame.version, answer] += 1

    def add_request(self, size: int) -> None:
        with self._lock:
            self.requests += 1
            self.sent_bytes += size

    def add_closed(self) -> None:
        with self._lock:
            self.closed += 1

    def add_unanswered(self) -> None:
        with self._lock:
            self.unanswered += 1

    def read_answers(self) -> None:
        """Look into the answers; after the measurement, because it takes a core."""
        for (api_key, version, answer), times in self._unread.items():
            schema = load_response_schema(api_key, version)
            _, start = entity_reader(schema.__header_schema__)(answer, 0)
            entity, _ = entity_reader(schema)(answer, start)
            for name, count in _codes_in(entity).items():
                self.answers[name] += count * times
        self._unread.clear()

    def sentence(self) -> str:
        """Say it in one line."""
        said = [f"{self.answered:,} of {self.requests:,} answered"] if self.requests else []
        if self.answers:
            codes = (f"{count:,} {name}" for name, count in self.answers.most_common(4))
            said[-1:] = [f"{said[-1]} ({', '.join(codes)})"]
        if self.requests:
            said.append(f"slowest {self.slowest_seconds:.2f} s")
            said.append(
                f"{_megabytes(self.sent_bytes)} sent, {_megabytes(self.received_bytes)} got"
            )
        if self.closed:
            said.append(f"{self.closed} connections closed")
        if self.unanswered:
            said.append(f"{self.unanswered} without an answer")
        return "; ".join([*said, *self.notes])


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB" if size >= 100_000 else f"{size / 1e3:.1f} kB"


def _codes_in(entity: Any) -> Counter[str]:
    """Count the error codes anywhere in an answer."""
    found: Counter[str] = Counter()
    if isinstance(entity, tuple):
        for one in entity:
            found += _codes_in(one)
    elif dataclasses.is_dataclass(entity):
        for one in dataclasses.fields(entity):
            value = getattr(entity, one.name)
            if isinstance(value, ErrorCode):
                found[value.name.upper()] += 1
            else:
                found += _codes_in(value)
    return found


class Offender:
    """One connection. What happens to it is written into its outcome, nothing is raised."""

    def __init__(self, port: int, outcome: CulpritAccount, patience_s: float = _PATIENCE_S) -> None:
        self._outcome = outcome
        self._socket = socket.create_connection(("127.0.0.1", port), patience_s)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.is_open = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send(self, data: bytes) -> bool:
        """Send bytes as they are; False when the broker has closed or takes none."""
        try:
            self._socket.sendall(data)
        except TimeoutError:
            self._end(self._outcome.add_unanswered)
        except OSError:
            self._end(self._outcome.add_closed)
        return self.is_open

    def push(self, data: bytes) -> bool:
        """Send as much as the kernel takes at once; False when the broker has closed."""
        try:
            with self._not_waiting():
                self._socket.send(data)
        except BlockingIOError:
            pass  # not read from: it hoards what it has
        except OSError:
            self._end(self._outcome.add_closed)
        return self.is_open

    def receive(self, frame: Frame, began_at: float) -> bytes | None:
        """Return the answer to `frame`; None when there is none."""
        answer = self._exactly(_SIZE.size)
        if answer is not None:
            answer = self._exactly(_SIZE.unpack(answer)[0])
        if answer is not None:
            self._outcome.add_answer(frame, answer, time.monotonic() - began_at)
        return answer

    def ask(self, frame: Frame) -> bytes | None:
        """Send one request and wait for its answer."""
        return self.ask_all([frame])[0]

    def ask_all(self, frames: Sequence[Frame]) -> list[bytes | None]:
        """Send all at once, then read the answers."""
        began_at = time.monotonic()
        for frame in frames:
            self._outcome.add_request(len(frame.data))
        self.send(b"".join(frame.data for frame in frames))
        return [self.receive(frame, began_at) if self.is_open else None for frame in frames]

    def is_closed_by_peer(self) -> bool:
        """Look without waiting whether the broker has let go."""
        try:
            with self._not_waiting():
                return not self._socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            return True

    @contextmanager
    def _not_waiting(self) -> Iterator[None]:
        # MSG_DONTWAIT would not do: Python itself waits on a socket that has a time limit.
        patience_s = self._socket.gettimeout()
        self._socket.settimeout(0)
        try:
            yield
        finally:
            self._socket.settimeout(patience_s)

    def _end(self, account: Callable[[], None]) -> None:
        if self.is_open:
            self.is_open = False
            account()

    def _exactly(self, size: int) -> bytes | None:
        data = bytearray(size)
        view, have = memoryview(data), 0
        while have < size:
            try:
                got = self._socket.recv_into(view[have:], min(size - have, _READ_BYTES))
            except TimeoutError:
                self._end(self._outcome.add_unanswered)
                return None
            except OSError:
                got = 0
            if not got:
                self._end(self._outcome.add_closed)
                return None
            have += got
        return bytes(data)


def all_at_once(port: int, scripts: Sequence[Sequence[Frame]], outcome: CulpritAccount) -> None:
    """One connection a script; each sends its frames in one go."""

    def run(frames: Sequence[Frame]) -> None:
        with Offender(port, outcome) as offender:
            offender.ask_all(frames)

    together([partial(run, frames) for frames in scripts])


def over_and_over(
    port: int, frames: Sequence[Frame], outcome: CulpritAccount, *, connections: int, seconds: float
) -> None:
    """Each connection asks one after the other until the time is over."""

    def run() -> None:
        deadline = time.monotonic() + seconds
        with Offender(port, outcome) as offender:
            while offender.is_open and time.monotonic() < deadline:
                for frame in frames:
                    offender.ask(frame)

    together([run] * connections)


def together(jobs: Sequence[Callable[[], Any]]) -> None:
    """Run all in threads of their own; raise the first failure when all have ended."""
    failures: list[BaseException] = []

    def guarded(job: Callable[[], Any]) -> None:
        try:
            job()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(job,), daemon=True) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
