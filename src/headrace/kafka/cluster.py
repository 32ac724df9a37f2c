"""Clusters of real Apache Kafka on this machine, each in a directory of its own.

A cluster outlives the process that starts it: any process can open its directory and find,
start, stop and signal its nodes. One command at a time changes a cluster as a whole, and none
while another starts one of its nodes: nothing is started of a cluster that is gone.
"""

import asyncio
import contextlib
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple

from headrace.client.addresses import Address
from headrace.client.bus import Bus
from headrace.file_lock import FileLock, LockedError
from headrace.java.installation import find_java
from headrace.kafka import layout as layouts
from headrace.kafka.errors import ClusterError, NodeError
from headrace.kafka.jars import KAFKA_VERSION, find_version, kafka_jars
from headrace.kafka.jvm import SMALL_JVM
from headrace.kafka.layout import BROKER, CONTROLLER, HOST, Layout
from headrace.kafka.node import PAUSED, POLL_S, STOPPED, Node
from headrace.kafka.node_process import LOCK_TIMEOUT_S
from headrace.patience import Patience

if TYPE_CHECKING:
    from headrace.client.cluster_questions import Replica

_LOCK_FILE = ".cluster.lock"
_FAILED_GRACE_S = 10.0
_LONGEST_PAUSE_S = 0.2


class UpProgress(NamedTuple):
    """How far `up` is. `step`: "jars" (bytes), "format", "start" (nodes), "wait" (brokers)."""

    step: str
    done: int
    total: int


OnProgress = Callable[[UpProgress], None]


class Cluster:
    """A cluster of real Apache Kafka here. Not for several threads at once; several processes may.

        with Cluster.create(brokers=1) as bus, Producer(bus) as producer:
            producer.send("orders", b"one tonne of grain")

    The block brings it up. At its end a cluster without a directory of the caller's is destroyed,
    any other is down, and `Cluster.open` finds it again. `async with` does so in a thread.
    """

    def __init__(self, directory: Path, layout: Layout, *, is_tied: bool = False) -> None:
        self.directory = directory.absolute()
        self.layout = layout
        self.nodes = tuple(
            Node(
                self.directory / f"node-{place.id}",
                layout,
                place,
                is_tied=is_tied,
                while_it_starts=self.in_use,
            )
            for place in layout.nodes
        )
        self._has_lock = False
        self._is_temporary = False

    @classmethod
    def create(
        cls,
        directory: Path | str | None = None,
        name: str = "default",
        *,
        brokers: int = 3,
        controllers: int = 0,
        version: str = KAFKA_VERSION,
        port: int = 0,
        settings: Mapping[str, str] | None = None,
        jvm_flags: Sequence[str] = SMALL_JVM,
        is_tied: bool = False,
    ) -> "Cluster":
        """Lay out a new cluster in a new or empty directory; nothing is started yet.

        Without a directory it has a temporary one. `is_tied`: its nodes end with this process, if
        its main thread starts them; those of a temporary one always do.
        """
        layout = layouts.plan(
            name,
            brokers=brokers,
            controllers=controllers,
            version=find_version(version),
            port=port,
            settings=settings,
            jvm_flags=jvm_flags,
        )
        is_temporary = directory is None
        directory = Path(directory or tempfile.mkdtemp(prefix="headrace-kafka-"))
        check_directory(directory)
        try:
            directory.mkdir(parents=True, exist_ok=True)
            lock = FileLock(directory / _LOCK_FILE, timeout_s=LOCK_TIMEOUT_S)
        except OSError as error:
            raise ClusterError(f"cannot write {directory}: {error.strerror}") from error
        except LockedError as error:
            raise ClusterError(
                f"another command is making a cluster in {directory}; wait for it"
            ) from error
        with lock:
            _lay_down(layout, directory)
        made = cls(directory, layout, is_tied=is_tied or is_temporary)
        made._is_temporary = is_temporary
        return made

    @classmethod
    def open(cls, directory: Path | str) -> "Cluster":
        """Find the cluster that was made in `directory`."""
        try:
            return cls(Path(directory), layouts.read(Path(directory)))
        except OSError as error:
            raise ClusterError(f"there is no cluster in {directory}") from error

    @property
    def name(self) -> str:
        """What it was called when it was made."""
        return self.layout.name

    @property
    def version(self) -> str:
        """Kafka's."""
        return self.layout.version

    @property
    def brokers(self) -> tuple[Node, ...]:
        """The nodes that have topics and serve clients."""
        return tuple(node for node in self.nodes if BROKER in node.roles)

    @property
    def controllers(self) -> tuple[Node, ...]:
        """The nodes that vote, combined or not."""
        return tuple(node for node in self.nodes if CONTROLLER in node.roles)

    @property
    def bootstrap(self) -> str:
        """All its brokers, for `bootstrap.servers`."""
        return ",".join(node.bootstrap for node in self.brokers)

    @property
    def broker_addresses(self) -> dict[int, Address]:
        """Where each broker is, by its id."""
        return {node.id: (HOST, node.port) for node in self.brokers if node.port is not None}

    @property
    def bus(self) -> Bus:
        """All its brokers, for clients."""
        return Bus(self.bootstrap)

    def active_controller(self, timeout_s: float = 10) -> int:
        """The node that is the active controller now; BusError when none is elected."""
        from headrace.client.cluster_questions import active_controller

        return active_controller(self.bus, timeout_s)

    def replicas(self, timeout_s: float = 10) -> "list[Replica]":
        """All partitions with their leaders, ISRs and lags; BusError when no broker answers."""
        from headrace.client.cluster_questions import replicas

        return replicas(self.bus, timeout_s)

    @property
    def is_there(self) -> bool:
        """Whether it is still the cluster of its directory: nobody has removed it since."""
        try:
            return layouts.read(self.directory).cluster_id == self.layout.cluster_id
        except (OSError, ClusterError):
            return False

    @property
    def is_running(self) -> bool:
        """Whether any of its nodes runs."""
        return any(node.state != STOPPED for node in self.nodes)

    def node(self, node_id: int) -> Node:
        """One of its nodes, to `start`, `stop`, `kill`, `pause` or `resume`."""
        for node in self.nodes:
            if node.id == node_id:
                return node
        there = ", ".join(str(node.id) for node in self.nodes)
        raise ClusterError(f"cluster {self.name} has no node {node_id}; its nodes are {there}")

    def up(self, timeout_s: float = 120, on_progress: OnProgress | None = None) -> None:
        """Start all nodes that do not run, resume paused ones, return when the cluster serves.

        On failure those it has started are stopped again.
        """
        tell = on_progress or (lambda _progress: None)
        with self._locked():
            find_java()
            kafka_jars(self.version, on_bytes=lambda done, of: tell(UpProgress("jars", done, of)))
            absent = [node for node in self.nodes if node.state == STOPPED]
            self._check_ports(absent)
            for node in self.nodes:
                if node.state == PAUSED:
                    node.resume()
            try:
                self._prepare(absent, tell)
                for node in absent:
                    node.launch()
                _await_started(absent, timeout_s, tell)
                self.await_ready(timeout_s, on_progress)
            except BaseException:
                _stop_all(absent, _FAILED_GRACE_S)
                raise

    def await_ready(self, timeout_s: float = 120, on_progress: OnProgress | None = None) -> None:
        """Return when all brokers are there and every partition is served."""
        # Imported here, as kio's types are with it: a help text needs none of them.
        from headrace.client.cluster_questions import what_is_missing

        tell, brokers = on_progress or (lambda _progress: None), self.broker_addresses
        patience = Patience(timeout_s, longest_pause_s=_LONGEST_PAUSE_S)
        while missing := what_is_missing(
            brokers, on_alive=lambda count: tell(UpProgress("wait", count, len(brokers)))
        ):
            if not patience.pause():
                raise ClusterError(f"the cluster was not ready within {timeout_s:.0f} s: {missing}")

    def down(self, grace_s: float = 60) -> None:
        """Stop all nodes cleanly: brokers first, while there are controllers to hear of it."""
        with self._locked():
            _stop_all([node for node in self.nodes if CONTROLLER not in node.roles], grace_s)
            _stop_all(self.controllers, grace_s)

    def destroy(self) -> None:
        """End all nodes and remove all they have written, with the cluster itself."""
        with self._locked():
            _stop_all(self.nodes, grace_s=0)
            for node in self.nodes:
                shutil.rmtree(node.directory, ignore_errors=True)
            # Last: until now it could be found and destroyed again.
            (self.directory / layouts.FILE_NAME).unlink(missing_ok=True)
            (self.directory / _LOCK_FILE).unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # what others have put there stays
            self.directory.rmdir()

    def __enter__(self) -> Bus:
        try:
            self.up()
        except BaseException:  # what it has started it has stopped
            if self._is_temporary:
                self._leave()
            raise
        return self.bus

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._leave()

    async def __aenter__(self) -> Bus:
        return await asyncio.to_thread(self.__enter__)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await asyncio.to_thread(self._leave)

    def _leave(self) -> None:
        if not self.is_there:
            return  # destroyed inside the block
        if self._is_temporary:
            self.destroy()
        else:
            self.down()

    @contextlib.contextmanager
    def in_use(self) -> Iterator[None]:
        """Meanwhile it is not brought up or down or removed as a whole; refused if it is gone."""
        with self._locked(is_shared=True):
            yield

    def check_is_there(self) -> None:
        """ClusterError when somebody has removed it."""
        if not self.is_there:
            raise ClusterError(
                f"cluster {self.name} in {self.directory} was removed by another command"
            )

    def _check_ports(self, nodes: Sequence[Node]) -> None:
        places = {place.id: place for place in self.layout.nodes}
        for node in nodes:
            for port in places[node.id].ports:
                if not layouts.is_free(port):
                    raise ClusterError(
                        f"port {port} of node {node.id} is taken by another program; end that, "
                        "or make another cluster with --name"
                    )

    def _prepare(self, nodes: Sequence[Node], tell: OnProgress) -> None:
        try:
            for count, node in enumerate(nodes):
                tell(UpProgress("format", count, len(nodes)))
                formatted = (each.data_directory for each in self.nodes if each.is_formatted)
                node.prepare(next(formatted, None))
            tell(UpProgress("format", len(nodes), len(nodes)))
        except BaseException:
            for node in nodes:
                node.release()
            raise

    @contextlib.contextmanager
    def _locked(self, *, is_shared: bool = False) -> Iterator[None]:
        """Lock it, and look once more: while we waited it may have been removed."""
        self.check_is_there()
        if self._has_lock:  # what we do ourselves, as starting its nodes, needs no second one
            yield
            return
        path = self.directory / _LOCK_FILE
        try:
            lock = FileLock(path, is_shared=is_shared, timeout_s=LOCK_TIMEOUT_S)
        except LockedError as error:
            raise ClusterError(
                f"another command is at work on cluster {self.name}, such as up, down or a drill; "
                "wait until it is done"
            ) from error
        except OSError as error:
            self.check_is_there()
            raise ClusterError(f"cannot write {self.directory}: {error.strerror}") from error
        try:
            if not self.is_there:
                path.unlink(missing_ok=True)  # ours, made where nothing is any more
            self.check_is_there()
            self._has_lock = True
            yield
        finally:
            self._has_lock = False
            lock.close()


@contextlib.contextmanager
def running_cluster(
    directory: Path,
    name: str = "default",
    *,
    brokers: int = 3,
    controllers: int = 0,
    version: str = KAFKA_VERSION,
    port: int = 0,
    settings: Mapping[str, str] | None = None,
    jvm_flags: Sequence[str] = SMALL_JVM,
    is_tied: bool = True,
    timeout_s: float = 120,
) -> Iterator[Cluster]:
    """A cluster for a test: made, up, gone at the end, or with this process."""
    cluster = Cluster.create(
        directory,
        name,
        brokers=brokers,
        controllers=controllers,
        version=version,
        port=port,
        settings=settings,
        jvm_flags=jvm_flags,
        is_tied=is_tied,
    )
    try:
        cluster.up(timeout_s)
        yield cluster
    finally:
        cluster.destroy()


def check_directory(directory: Path) -> None:
    """ClusterError for a directory that Java could not open."""
    try:
        str(directory.absolute()).encode("utf-8")
    except UnicodeEncodeError as error:
        raise ClusterError(
            f"{str(directory)!r} is not UTF-8, and Java would not find it; choose another directory"
        ) from error


def _lay_down(layout: Layout, directory: Path) -> None:
    """Write the cluster's layout into a directory that we have locked and nobody else uses."""
    if (directory / layouts.FILE_NAME).exists():
        raise ClusterError(f"there is a cluster in {directory} already")
    try:
        if any(path.name != _LOCK_FILE for path in directory.iterdir()):
            (directory / _LOCK_FILE).unlink()
            raise ClusterError(f"{directory} holds other files; choose a new or an empty directory")
        layouts.write(layout, directory)
    except OSError as error:
        raise ClusterError(f"cannot write {directory}: {error.strerror}") from error


def _await_started(nodes: Sequence[Node], timeout_s: float, tell: OnProgress) -> None:
    """Look at all of them in turn: one that dies may be why the others do not get on."""
    patience, waiting = Patience(timeout_s, first_pause_s=POLL_S, longest_pause_s=POLL_S), [*nodes]
    while True:
        waiting = [node for node in waiting if not node.has_started()]
        tell(UpProgress("start", len(nodes) - len(waiting), len(nodes)))
        if not waiting:
            return
        if not patience.pause():
            raise waiting[0].lateness(timeout_s)


def _stop_all(nodes: Sequence[Node], grace_s: float) -> None:
    """Stop nodes side by side; a second Ctrl-C does not wait for them."""
    if not nodes:
        return
    try:
        with ThreadPoolExecutor(len(nodes)) as pool:
            failures = [*pool.map(lambda node: _try_to_stop(node, grace_s), nodes)]
    except BaseException:
        for node in nodes:
            node.kill()
        raise
    for failure in failures:
        if failure is not None:
            raise failure


def _try_to_stop(node: Node, grace_s: float) -> NodeError | None:
    try:
        node.stop(grace_s)
    except NodeError as error:
        return error
    return None
