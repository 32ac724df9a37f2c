"""One real Apache Kafka broker (KRaft, combined roles) in a directory of this machine.

Invariant: at most one node runs in a directory. Kafka's own lock comes too late, a
second node writes into the live metadata log first; so ours is taken before Java
starts, and Java inherits it: it is held as long as either process lives.
"""

import fcntl
import os
import subprocess
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from headrace.errors import NodeError
from headrace.kafka import process
from headrace.kafka.jvm import SMALL_JVM, archive_path, java_command, use_archive, write_log4j
from headrace.kafka.probe import answers_metadata

HOST = "127.0.0.1"
_STARTED = b"Kafka Server started"
_EXIT_ON_SIGTERM = 143  # what Java answers to SIGTERM after a clean stop
_FORMAT_TIMEOUT_S = 120
_POLL_S = 0.02


def random_cluster_id() -> str:
    """Return an id as Kafka makes them: base64 of a UUID, never with a leading dash.

    StorageTool would take one that starts with a dash for an option.
    """
    while (text := urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")).startswith("-"):
        pass
    return text


class KafkaNode:
    """A single-node cluster: `with KafkaNode(directory) as node: node.bootstrap`.

    Owned by one thread. `settings` are added to server.properties and win over the
    node's own. `jvm_flags` choose between quick to start (the default, which also
    uses the class-data archive) and fast (`BENCH_JVM`).
    """

    def __init__(
        self,
        directory: Path,
        *,
        port: int = 0,
        jvm_flags: Sequence[str] = SMALL_JVM,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.directory = directory.absolute()
        self.data_directory = self.directory / "data"
        self.log_file = self.directory / "kafka.log"
        self.port = port
        self.ready_seconds = 0.0
        self.process: subprocess.Popen[bytes] | None = None
        self._jvm_flags = tuple(jvm_flags)
        self._settings = dict(settings or {})
        self._lock: int | None = None
        self._new_archive: Path | None = None

    @property
    def bootstrap(self) -> str:
        return f"{HOST}:{self.port}"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self, timeout_s: float = 120) -> None:
        """Format the directory if it is new, start the broker, return when it serves."""
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise NodeError(f"cannot make {self.directory}: {error.strerror}") from error
        self._take_lock()
        try:
            properties, log4j_file = self._write_properties(), write_log4j(self.directory)
            self._format(properties, log4j_file)
            flags = [*self._jvm_flags, *self._archive_flags()]
            command = java_command("kafka.Kafka", properties, flags=flags, log4j_file=log4j_file)
            log_start = self.log_file.stat().st_size if self.log_file.exists() else 0
            started = time.monotonic()
            assert self._lock is not None
            self.process = process.start(
                command, output=self.log_file, cwd=self.directory, pass_fds=[self._lock]
            )
            self._await_ready(self.process, log_start, started + timeout_s)
            self.ready_seconds = time.monotonic() - started
        except BaseException:
            self.stop(grace_s=0)
            raise

    def stop(self, grace_s: float = 60) -> None:
        """Stop the broker cleanly, or by force when it takes longer than `grace_s`."""
        if self.process is not None:
            exit_code = process.stop(self.process, grace_s)
            self.process = None
            self._keep_archive(is_whole=exit_code == _EXIT_ON_SIGTERM)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def kill(self) -> None:
        """End the broker as a power cut would, as far as the process is concerned."""
        self.stop(grace_s=0)

    def _take_lock(self) -> None:
        if self._lock is not None:
            raise NodeError(f"the Kafka node in {self.directory} is already started")
        path = self.directory / ".headrace.lock"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            raise NodeError(
                f"another Kafka node runs in {self.directory}; stop it or choose another directory"
            ) from error
        self._lock = descriptor

    def _write_properties(self) -> Path:
        controller_port, port = process.free_ports(2)
        self.port = self.port or port
        properties = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@{HOST}:{controller_port}",
            "listeners": f"PLAINTEXT://{HOST}:{self.port},CONTROLLER://{HOST}:{controller_port}",
            "advertised.listeners": f"PLAINTEXT://{HOST}:{self.port}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": str(self.data_directory),
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            # Its 128 MiB by default do not fit into a small heap.
            "log.cleaner.dedupe.buffer.size": str(16 * 1024 * 1024),
            **self._settings,
        }
        path = self.directory / "server.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()), "utf-8")
        return path

    def _format(self, properties: Path, log4j_file: Path) -> None:
        if (self.data_directory / "meta.properties").exists():
            return
        arguments = ("format", "-t", random_cluster_id(), "-g", "-c", properties)
        flags = [*SMALL_JVM, *use_archive()]
        command = java_command(
            "kafka.tools.StorageTool", *arguments, flags=flags, log4j_file=log4j_file
        )
        try:
            answer = subprocess.run(
                command, capture_output=True, text=True, timeout=_FORMAT_TIMEOUT_S
            )
        except subprocess.TimeoutExpired as error:
            raise NodeError(
                f"formatting {self.data_directory} took over {_FORMAT_TIMEOUT_S} s"
            ) from error
        if answer.returncode:
            raise NodeError(
                f"Kafka's StorageTool could not format {self.data_directory}: "
                f"{(answer.stderr or answer.stdout).strip()}"
            )

    def _archive_flags(self) -> list[str]:
        if self._jvm_flags != SMALL_JVM:
            return []  # a benchmark runs Kafka as it comes
        if flags := use_archive():
            return flags
        self._new_archive = archive_path().with_suffix(f".{os.getpid()}-{id(self)}")
        return [f"-XX:ArchiveClassesAtExit={self._new_archive}"]

    def _keep_archive(self, *, is_whole: bool) -> None:
        if self._new_archive and self._new_archive.exists():
            if is_whole:
                self._new_archive.rename(archive_path())
            else:
                self._new_archive.unlink()
        self._new_archive = None

    def _await_ready(
        self, running: subprocess.Popen[bytes], log_start: int, deadline: float
    ) -> None:
        """Wait for Kafka's own line, which alone proves leadership, and for an answer."""
        while time.monotonic() < deadline:
            if (code := running.poll()) is not None:
                raise self._failure(f"exited with code {code} before it was ready")
            with self.log_file.open("rb") as log:
                log.seek(log_start)
                has_started = _STARTED in log.read()
            if has_started and answers_metadata(HOST, self.port):
                return
            time.sleep(_POLL_S)
        raise self._failure("was not ready in time")

    def _failure(self, what: str) -> NodeError:
        return NodeError(
            f"the Kafka node in {self.directory} {what}; its log is {self.log_file} and ends:\n"
            f"{process.tail(self.log_file)}"
        )
