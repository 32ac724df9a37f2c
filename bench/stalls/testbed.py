"""Where a load is let loose: one fresh broker, its topics, and its memory."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench.clients import replay
from bench.driver import Driver, MeasuredBroker
from bench.errors import BenchError
from bench.requests import write_produce_requests
from bench.stalls import frames
from bench.stalls.offenders import CulpritAccount, Offender
from bench.topics import admin_of, create_topic
from headrace.patience import Patience

_POLL_S = 0.05
_TOPICS_A_REQUEST = 500
_RESET_PEAK = "5"  # proc(5): /proc/pid/clear_refs


class Testbed:
    """One broker while it is put to the test. `scale` 1 is the load as it is told."""

    def __init__(self, driver: Driver, directory: Path, *, scale: float, is_durable: bool) -> None:
        self.engine = driver.name
        self.scratch = directory
        self._driver, self._directory = driver, directory / "broker"
        self._scale, self._is_durable = scale, is_durable
        self._running = ExitStack()
        self.broker: MeasuredBroker

    @contextmanager
    def open(self) -> Iterator[None]:
        """Run the broker inside the block."""
        self._start()
        try:
            yield
        finally:
            self._running.close()

    @property
    def port(self) -> int:
        return self.broker.port

    def count(self, full: int, at_least: int = 1) -> int:
        """Scale a number of things."""
        return max(at_least, round(full * self._scale))

    def seconds(self, full: float) -> float:
        """Scale a duration, but never below two seconds: pings must meet it."""
        return max(2.0, full * self._scale)

    def restart(self, while_down: Callable[[], None]) -> None:
        """Stop the broker cleanly, do something to its files, start it again."""
        self._running.close()
        while_down()
        self._start()

    def ask(self, frame: frames.Frame) -> bytes:
        """Ask something that must be answered; what it says is not looked at."""
        with Offender(self.port, CulpritAccount()) as client:
            answer = client.ask(frame)
        if answer is None:
            raise BenchError(f"{self.engine} did not answer API {frame.api_key}")
        return answer

    def create_topic(self, name: str, partitions: int = 1) -> None:
        """Make one and wait until all of its partitions are served."""
        create_topic(admin_of(self.port), name, partitions)

    def create_topics(self, names: Iterable[str], partitions: int = 1) -> None:
        """Make many, in requests of a bearable size, and wait for the last."""
        wanted = list(names)
        for start in range(0, len(wanted), _TOPICS_A_REQUEST):
            self.ask(frames.create_topics(wanted[start : start + _TOPICS_A_REQUEST], partitions))
        self.create_topic(f"{wanted[-1]}-last")

    def write(
        self,
        topic: str,
        partitions: int,
        *,
        value_bytes: int,
        messages: int,
        requests: int,
        connections: int = 4,
    ) -> int:
        """Append `requests` batches of `messages` over all partitions; return a batch's size."""
        file = self.scratch / f"{topic}.produce"
        size = write_produce_requests(
            file,
            topic=topic,
            partitions=partitions,
            value_bytes=value_bytes,
            messages=messages,
            acks=1,
        )
        replay(self.port, produce=file, connections=connections, in_flight=5, count=requests)
        file.unlink()
        os.sync()
        return size

    def find_coordinator(self) -> None:
        """Ask until `__consumer_offsets` is there and loaded."""
        self.create_topic("coordinated")
        probe = frames.commit_offsets("first", {"coordinated": [0]})
        find = frames.encode(frames.FIND_COORDINATOR, 4, key_type=0, coordinator_keys=("first",))
        answers = dict[str, int]()

        def takes_commits() -> bool:
            outcome = CulpritAccount()
            with Offender(self.port, outcome) as client:
                client.ask(find)
                client.ask(probe)
            outcome.read_answers()
            answers.clear()
            answers.update(outcome.answers)
            return set(answers) == {"NONE"}

        if not _patience(60).until(takes_commits):
            raise BenchError(f"{self.engine} takes no commits: {answers}")

    def await_files(self, is_done: Callable[[], bool], at_most_seconds: float) -> bool:
        """Wait until something has happened to the files, for so long; whether it has."""
        return bool(_patience(at_most_seconds).until(is_done))

    def bytes_of(self, pattern: str) -> int:
        """Sum the sizes of files in the data directory."""
        while True:
            try:
                return sum(one.stat().st_size for one in self.broker.data_directory.glob(pattern))
            except FileNotFoundError:
                continue  # deleted meanwhile: count again

    def reset_peak(self) -> None:
        """Let the kernel measure the broker's peak of memory from now on."""
        Path(f"/proc/{self.broker.pid}/clear_refs").write_text(_RESET_PEAK)

    def peak_bytes(self) -> int | None:
        """The most memory it had since `reset_peak`; None when it has ended."""
        try:
            lines = Path(f"/proc/{self.broker.pid}/status").read_text().splitlines()
        except OSError:
            return None
        for line in lines:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
        return None  # a process that has ended and was not waited for

    def _start(self) -> None:
        context = self._driver.running(self._directory, is_durable=self._is_durable)
        self.broker = self._running.enter_context(context)


def _patience(timeout_s: float) -> Patience:
    return Patience(timeout_s, first_pause_s=_POLL_S, longest_pause_s=_POLL_S)
