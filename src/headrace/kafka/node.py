"""One process of real Apache Kafka in a directory: a node of a cluster, or the whole of one.

It may outlive the process that started it; any other process can find and signal it.
Invariant: at most one node runs in a directory; see node_process.py.
"""

import contextlib
import os
import subprocess
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from headrace.file_lock import FileLock
from headrace.kafka import process
from headrace.kafka.errors import NodeError
from headrace.kafka.jars import KAFKA_VERSION
from headrace.kafka.jvm import (
    ARCHIVE_SUFFIX,
    SMALL_JVM,
    archive_path,
    java_command,
    use_archive,
    write_log4j,
)
from headrace.kafka.layout import HOST, Layout, NodeLayout, random_cluster_id
from headrace.kafka.node_files import (
    format_like,
    format_storage,
    is_formatted,
    node_properties,
    write_properties,
)
from headrace.kafka.node_process import MAIN_CLASS, NodeProcess, is_paused
from headrace.patience import Patience

RUNNING, PAUSED, STOPPED = "running", "paused", "stopped"
_STARTED = b"Kafka Server started"
POLL_S = 0.02
_STACK_FRAME = ("\tat ", "\t... ")
_TAIL_LINES = 15
_EXIT_ON_SIGTERM = 143  # what Java answers to SIGTERM after a clean stop


class Node:
    """One node of a cluster. Not for several threads at once; several processes are fine."""

    def __init__(
        self,
        directory: Path,
        layout: Layout,
        place: NodeLayout,
        *,
        is_tied: bool = False,
        while_it_starts: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext,
    ) -> None:
        """`while_it_starts` keeps others from removing the directory, or refuses the start."""
        self.directory = directory.absolute()
        self.data_directory = self.directory / "data"
        self.log_file = self.directory / "kafka.log"
        self.id, self.roles, self.port = place.id, place.roles, place.port
        self._layout, self._place, self._is_tied = layout, place, is_tied
        self._while_it_starts = while_it_starts
        self._java = NodeProcess(self.directory)
        self._output_file = self.directory / "java.out"  # what Java says outside of the log
        self._lock: FileLock | None = None

    @property
    def bootstrap(self) -> str:
        """Where clients find it; empty for a pure controller."""
        return "" if self.port is None else f"{HOST}:{self.port}"

    @property
    def state(self) -> str:
        """`running`, `paused` or `stopped`."""
        found = self._java.find()
        if found is None:
            return STOPPED
        return PAUSED if is_paused(found) else RUNNING

    @property
    def pid(self) -> int | None:
        """Its process, while it has one."""
        found = self._java.find()
        return None if found is None else found.pid

    @property
    def memory_bytes(self) -> int | None:
        """Resident memory of its process."""
        found = self._java.find()
        try:
            return None if found is None else int(found.memory_info().rss)
        except psutil.Error:
            return None

    @property
    def process(self) -> subprocess.Popen[bytes] | None:
        """Its process as a child of this one; None when another started it."""
        return self._java.child

    @property
    def is_formatted(self) -> bool:
        """Whether its storage is ready for a start; it is from the first one on."""
        return is_formatted(self.data_directory)

    def prepare(self, formatted: Path | None = None) -> None:
        """Reserve the directory, write the configuration and format the storage if it is new.

        `formatted` is the data directory of another node of the cluster that is formatted.
        """
        if self._lock is not None:
            return
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise NodeError(f"cannot make {self.directory}: {error.strerror}") from error
        self._lock = self._java.take_lock()
        try:
            properties = node_properties(self._layout, self._place, self.data_directory.name)
            write_properties(properties, self._java.properties_file)
            if not self.is_formatted:
                self._format(formatted)
        except BaseException:
            self.release()
            raise

    def _format(self, formatted: Path | None) -> None:
        if formatted is not None:
            format_like(formatted, self.data_directory, self.id)
        else:
            format_storage(self._java.properties_file, self.data_directory, self._layout)

    def release(self) -> None:
        """Give up what `prepare` has reserved."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def launch(self) -> None:
        """Start the process and return at once; `await_started` waits for it."""
        with self._while_it_starts():
            self.prepare()
            self._launch()

    def _launch(self) -> None:
        assert self._lock is not None
        try:
            self._settle_archive(is_whole=False)  # nobody knows how that run ended
            archive = self._new_archive()
            flags = [*self._layout.jvm_flags]
            if archive:
                flags.append(f"-XX:ArchiveClassesAtExit={archive}")
            elif self._has_archive:
                flags += use_archive(self._layout.version)
            command = java_command(
                MAIN_CLASS,
                self._java.properties_file,
                flags=flags,
                log4j_file=write_log4j(self.directory, log_name=self.log_file.name),
                version=self._layout.version,
            )
            log_start = self.log_file.stat().st_size if self.log_file.exists() else 0
        except BaseException:
            self.release()
            raise
        lock, self._lock = self._lock, None
        self._java.launch(
            command,
            lock=lock,
            output=self._output_file,
            is_tied=self._is_tied,
            log_start=log_start,
            archive=str(archive or ""),
        )

    def has_started(self) -> bool:
        """Whether it serves since its last start; NodeError if it has ended instead."""
        child, log_start = self._java.child, int(self._java.facts().get("log_start", 0))
        if child is not None and child.poll() is not None:
            raise self._failure(f"ended with code {child.returncode} before it was ready")
        if child is None and self._java.find() is None:
            raise self._failure("ended before it was ready")
        # Kafka's own line alone proves leadership; and it is to answer, too.
        return _says_started(self.log_file, log_start) and self._answers()

    def await_started(self, timeout_s: float = 120) -> None:
        """Return when it serves; NodeError with the end of its log when it does not."""
        patience = Patience(timeout_s, first_pause_s=POLL_S, longest_pause_s=POLL_S)
        if not patience.until(self.has_started):
            raise self.lateness(timeout_s)

    def lateness(self, timeout_s: float) -> NodeError:
        """The error of a node that lives and does not serve in time."""
        return self._failure(f"was not ready within {timeout_s:.0f} s")

    def start(self, timeout_s: float = 120) -> None:
        """Start it and return when it serves; stops it again when it does not."""
        self.launch()
        try:
            self.await_started(timeout_s)
        except BaseException:
            self.kill()
            raise

    def stop(self, grace_s: float = 60) -> None:
        """Stop it cleanly, or by force when it takes longer than `grace_s`."""
        self.release()
        was_running = self._java.find() is not None
        is_clean = self._java.stop(grace_s) and was_running
        if (child := self._java.child) is not None:
            is_clean = is_clean and child.returncode == _EXIT_ON_SIGTERM
        self._settle_archive(is_whole=is_clean)

    def kill(self) -> None:
        """End it as a power cut would, as far as the process is concerned (SIGKILL)."""
        self.stop(grace_s=0)

    def pause(self) -> None:
        """Let it stand still: a stalled machine, not a dead one (SIGSTOP)."""
        if not self._java.pause():
            raise self._not_running()

    def resume(self) -> None:
        """Let a paused one go on (SIGCONT)."""
        if not self._java.resume():
            raise self._not_running()

    def restart(self, timeout_s: float = 120, grace_s: float = 60) -> None:
        """Stop it cleanly and start it again."""
        self.stop(grace_s)
        self.start(timeout_s)

    def _not_running(self) -> NodeError:
        return NodeError(f"node {self.id} of cluster {self._layout.name} does not run")

    def _answers(self) -> bool:
        # Imported while Java starts: a help text needs none of kio's types.
        from headrace.client.cluster_questions import is_serving

        return self.port is None or is_serving((HOST, self.port))

    @property
    def _has_archive(self) -> bool:
        # A measurement runs Kafka as it comes; and an archive fits the flags it was made with.
        return self._layout.jvm_flags == SMALL_JVM

    def _new_archive(self) -> Path | None:
        """Where this run leaves an archive: the first node's does, if there is none yet."""
        path = archive_path(self._layout.version) if self._has_archive and self.id == 1 else None
        if path is None or path.exists():
            return None
        return path.with_suffix(f".{uuid.uuid4().hex}")

    def _settle_archive(self, *, is_whole: bool) -> None:
        """Put the archive that the last run has left, if any, into its place, or away."""
        path = Path(self._java.facts().get("archive") or os.devnull)
        with contextlib.suppress(FileNotFoundError):  # another process was quicker
            if path.is_file() and is_whole:
                # Named after it, so that a stop does not have to look at Java and the jars.
                path.rename(path.with_suffix(ARCHIVE_SUFFIX))
            elif path.is_file():
                path.unlink()

    def _failure(self, what: str) -> NodeError:
        said = "\n".join(
            line
            for file in (self.log_file, self._output_file)
            for line in process.tail(file, 200).splitlines()
            if not line.startswith(_STACK_FRAME)
        )
        tail = "\n".join(said.splitlines()[-_TAIL_LINES:])
        return NodeError(
            f"the Kafka node in {self.directory} {what}; its log is {self.log_file} and ends:\n"
            f"{tail}"
        )


class KafkaNode:
    """A single-node cluster: `with KafkaNode(directory) as node: node.bootstrap`.

    Owned by one thread, and gone with its process. `settings` are added to server.properties
    and win over the node's own. `jvm_flags` choose between quick to start (the default, which
    also uses the class-data archive) and fast (`BENCH_JVM`).
    """

    def __init__(
        self,
        directory: Path,
        *,
        port: int = 0,
        jvm_flags: Sequence[str] = SMALL_JVM,
        settings: Mapping[str, str] | None = None,
        version: str = KAFKA_VERSION,
    ) -> None:
        self.directory = directory.absolute()
        self.data_directory = self.directory / "data"
        self.log_file = self.directory / "kafka.log"
        self.port = port
        self.ready_seconds = 0.0
        self.process: subprocess.Popen[bytes] | None = None
        self._version, self._jvm_flags = version, tuple(jvm_flags)
        self._settings = dict(settings or {})
        self._node: Node | None = None

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
        if self._node is not None:
            raise NodeError(f"the Kafka node in {self.directory} is already started")
        controller_port, port = process.free_ports(2)
        self.port = self.port or port
        place = NodeLayout(id=1, port=self.port, controller_port=controller_port)
        layout = Layout(
            name=self.directory.name,
            version=self._version,
            cluster_id=random_cluster_id(),
            nodes=(place,),
            settings=self._settings,
            jvm_flags=self._jvm_flags,
        )
        node = Node(self.directory, layout, place, is_tied=True)
        node.prepare()
        started = time.monotonic()
        node.start(timeout_s)
        self.ready_seconds = time.monotonic() - started
        self._node, self.process = node, node.process

    def stop(self, grace_s: float = 60) -> None:
        """Stop the broker cleanly, or by force when it takes longer than `grace_s`."""
        if self._node is not None:
            self._node.stop(grace_s)
            self._node = self.process = None

    def kill(self) -> None:
        """End the broker as a power cut would, as far as the process is concerned."""
        self.stop(grace_s=0)


def _says_started(log_file: Path, log_start: int) -> bool:
    try:
        with log_file.open("rb") as log:
            # A log that is shorter than it was has been rolled since.
            if os.fstat(log.fileno()).st_size >= log_start:
                log.seek(log_start)
            return _STARTED in log.read()
    except FileNotFoundError:
        return False
