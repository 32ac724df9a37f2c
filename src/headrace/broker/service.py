"""What every connection shares, and the way from a request to its handler."""

import asyncio
import inspect
import logging
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from headrace.broker.answers import Channel, Piece, QueuedAnswer, SlowAnswer
from headrace.broker.batch_checks import BatchChecks
from headrace.broker.committer import Committer
from headrace.broker.descriptors import SocketQuota
from headrace.broker.dispatch import APIS, Api
from headrace.broker.durability import DiskSync
from headrace.broker.fetch_reader import FetchReader
from headrace.broker.fetch_sessions import FetchSessions
from headrace.broker.gauges import group_samples
from headrace.broker.handlers import api_versions
from headrace.broker.handlers.fetch import FetchHandler
from headrace.broker.handlers.produce import ProduceHandler
from headrace.broker.log_finder import LogFinder
from headrace.broker.memory import MemoryBudget
from headrace.broker.read_threads import ReadThreads
from headrace.broker.receive_buffer import ReceiveBuffer
from headrace.broker.state import BrokerState, RequestContext
from headrace.broker.waiting_fetches import WaitingFetches
from headrace.metrics import Metrics
from headrace.protocol.codec import decode_request, encode_response, is_heavier
from headrace.protocol.errors import WireError
from headrace.protocol.headers import RequestHeader, response_header
from headrace.protocol.versions import API_VERSIONS, FETCH, PRODUCE

if TYPE_CHECKING:
    from headrace.broker.groups.runtime import GroupRuntime

_log = logging.getLogger(__name__)
_Result = TypeVar("_Result")

# Larger requests are decoded and longer answers encoded in a thread. Either takes a few
# milliseconds at these sizes.
MAX_AT_ONCE_BYTES = 16 * 1024
MAX_AT_ONCE_ELEMENTS = 500
# What threads have reported comes round with the loop's next turns.
_ROUNDS_TO_HEAR = 3
# How often those who hold memory are looked at while others wait for it.
DROP_EVERY_MS = 900
# What all connections' buffered requests together may take of one turn: a full buffer of small
# produce requests takes as long, so that only a crowd of them is cut.
TURN_SECONDS = 0.015


class ServedConnection(Channel, Protocol):
    """A connection as those see it who admit it, serve it and let it go."""

    has_descriptor: bool
    last_active_ms: int

    @property
    def is_quiet(self) -> bool:
        """Nothing is owed to this client."""

    def send(self, *pieces: Piece) -> None:
        """Answer at once; keeps the order when earlier answers are still out."""

    def refuse(self, error: WireError) -> None:
        """Its bytes make no sense: there is nothing to go on with."""

    def is_hoarding(self, now_ms: int) -> bool:
        """It holds memory for a request that does not get whole."""

    def shrink(self) -> None:
        """Give back buffer memory that a quiet client does not need."""

    def finish(self) -> None:
        """Send what is written already, then close."""


class Service:
    """Event-loop thread only."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        broker: BrokerState,
        metrics: Metrics,
        sockets: SocketQuota | None = None,
    ) -> None:
        settings = broker.settings
        self.loop = loop
        self.broker = broker
        self.steady_ms = broker.clock.steady_ms  # a wall clock that jumps ends no connection
        self.metrics = metrics
        self.budget = MemoryBudget(
            settings.int("headrace.buffer.memory.bytes"), metrics.buffer_bytes
        )
        self.sockets = sockets or SocketQuota(log_files=0)
        self.max_frame_bytes = settings.int("socket.request.max.bytes")
        self.max_inflight = settings.int("headrace.connection.inflight.requests.max")
        self.connections: set[ServedConnection] = set()
        self._by_peer: dict[str, int] = {}
        self._turn_deadline = 0.0
        self._dropped_ms = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._slow_thread: ThreadPoolExecutor | None = None
        # (API key, version) of which the types are loaded, which takes up to 50 ms.
        self._known_messages: set[tuple[int, int]] = set()
        self.waiting = WaitingFetches()
        self.sync = DiskSync(loop, metrics)
        self.reads = ReadThreads(loop)
        self.checks = BatchChecks(loop)
        self.committer = Committer(
            loop,
            broker.now_ms,
            self.waiting,
            metrics,
            is_checking=settings.bool("headrace.debug.checks"),
        )
        self.sessions = FetchSessions(
            settings.int("max.incremental.fetch.session.cache.slots"), eviction_ms=120_000
        )
        broker.open_groups = self._open_groups
        self.produce = ProduceHandler(
            broker,
            metrics,
            committer=self.committer,
            checks=self.checks,
            sync=self.sync,
            spawn=self.spawn,
        )
        self.fetch = FetchHandler(
            loop,
            broker,
            metrics,
            reader=FetchReader(LogFinder(broker.topics), metrics),
            sessions=self.sessions,
            committer=self.committer,
            reads=self.reads,
            waiting=self.waiting,
        )
        self.is_draining = False

    def is_turn_over(self) -> bool:
        """Whether requests that lie in buffers have had their share of this turn of the loop."""
        now = perf_counter()
        if not self._turn_deadline:
            self._turn_deadline = now + TURN_SECONDS
            self.loop.call_soon(self._next_turn)
            return False
        return now >= self._turn_deadline

    def _next_turn(self) -> None:
        self._turn_deadline = 0.0

    # --- connections

    def admit(self, connection: ServedConnection) -> str | None:
        """Count a new connection in; return why it may not stay."""
        self.connections.add(connection)
        self.metrics.connections_total.value += 1
        self.metrics.connections_open.value += 1
        from_peer = self._by_peer[connection.peer] = self._by_peer.get(connection.peer, 0) + 1
        settings = self.broker.settings
        reason = None
        connection.has_descriptor = self.sockets.take()
        if self.is_draining:
            reason = "the broker is stopping"
        elif not connection.has_descriptor:
            limit = self.sockets.limit
            reason = f"{limit} sockets are open, and the logs need the rest of `ulimit -n`"
        elif len(self.connections) > settings.int("max.connections"):
            reason = "max.connections reached"
        elif from_peer > settings.int("max.connections.per.ip"):
            reason = "max.connections.per.ip reached"
        if reason is not None:
            self.metrics.connections_refused.value += 1
        return reason

    def dismiss(self, connection: ServedConnection) -> None:
        """The connection is gone."""
        if connection in self.connections:
            self.connections.remove(connection)
            if connection.has_descriptor:
                self.sockets.give_back()
            self.metrics.connections_open.value -= 1
            left = self._by_peer[connection.peer] - 1
            if left:
                self._by_peer[connection.peer] = left
            else:
                del self._by_peer[connection.peer]

    def sweep_idle(self, now_ms: int, quiet_ms: int) -> None:
        """Close connections idle too long; take large buffers from those merely quiet."""
        max_idle_ms = self.broker.settings.int("connections.max.idle.ms")
        for connection in tuple(self.connections):
            idle_ms = now_ms - connection.last_active_ms
            if 0 <= max_idle_ms < idle_ms and connection.is_quiet:
                connection.close()
            elif idle_ms > quiet_ms:
                connection.shrink()

    def drop_stalled(self) -> None:
        """Memory is short: let go those who hold some for requests that hardly get on."""
        now_ms = self.steady_ms()
        if now_ms - self._dropped_ms < DROP_EVERY_MS:
            return  # hundreds may wait, and each asks
        self._dropped_ms = now_ms
        for connection in tuple(self.connections):
            if connection.is_hoarding(now_ms):
                facts = {"peer": connection.peer}
                _log.warning("a large request stalled while memory is short; closing", extra=facts)
                connection.close()
            else:
                connection.shrink()

    # --- requests

    def serve(
        self,
        connection: ServedConnection,
        buffer: ReceiveBuffer,
        start: int,
        end: int,
        header: RequestHeader,
    ) -> None:
        """Hand a request to its handler and see to its answer."""
        api = APIS.get(header.api_key)
        if api is None:
            raise WireError(f"API key {header.api_key} is not served")
        if header.api_version not in api.versions:
            if api.key == API_VERSIONS:
                connection.send(*self._encode(header, 0, api_versions.unsupported()))
                return
            raise WireError(f"{api.name} v{header.api_version} is not served")
        if api.key == PRODUCE:
            self.produce.handle(connection, buffer, start, end, header)
        elif api.key == FETCH:
            self.fetch.handle(connection, buffer.data, end, header)
        else:
            self._serve_cold(connection, bytes(buffer.view[header.body : end]), api, header)

    def _serve_cold(
        self, connection: ServedConnection, body: bytes, api: Api, header: RequestHeader
    ) -> None:
        version = header.api_version
        if len(body) > MAX_AT_ONCE_BYTES or (api.key, version) not in self._known_messages:
            self._serve_slowly(connection, api, header, body)
            return
        request = decode_request(api.key, version, api.schema_version, body, 0)
        response = self._ask(connection, request, api, header)
        if inspect.iscoroutine(response) or is_heavier(response, MAX_AT_ONCE_ELEMENTS):
            self._serve_slowly(connection, api, header, response)
        else:
            connection.send(*self._encode(header, version, response))

    def _ask(
        self, connection: ServedConnection, request: Any, api: Api, header: RequestHeader
    ) -> Any:
        client_id = (header.client_id or b"").decode(errors="replace")
        context = RequestContext(api.key, header.api_version, client_id, connection.peer)
        if api.sees_produced:
            # What was produced before on any connection is seen by what is asked now.
            self.committer.flush()
        return api.handler()(request, self.broker, context)

    def _serve_slowly(
        self, connection: ServedConnection, api: Api, header: RequestHeader, what: Any
    ) -> None:
        """Go on beside the loop's turn with a body, a coroutine or a long answer."""
        answer = SlowAnswer() if api.sees_produced else QueuedAnswer()
        connection.reserve(answer)
        # As in Kafka, the connection's next request is served when this one is. Not so with
        # groups: they wait for the disk or for each other, and answer in order all the same.
        is_held = api.sees_produced or not inspect.iscoroutine(what)
        if is_held:
            connection.hold()
        task = self.spawn(self._answer_later(connection, api, header, answer, what, is_held))
        if isinstance(answer, SlowAnswer):
            answer.task = task

    async def _answer_later(
        self,
        connection: ServedConnection,
        api: Api,
        header: RequestHeader,
        answer: QueuedAnswer,
        what: Any,
        is_held: bool,
    ) -> None:
        try:
            # A large commit is written in parts, and a later one must not come between them.
            is_released = not api.sees_produced
            if isinstance(what, bytes):
                is_released = api.waits_for_others or (
                    is_released and len(what) <= MAX_AT_ONCE_BYTES
                )
                request = await self._aside(_decode, api, header.api_version, what)
                what = self._ask(connection, request, api, header)
            if inspect.iscoroutine(what):
                if is_held and is_released:
                    is_held = False
                    connection.go_on()
                what = await what
            answer.pieces = await self._encode_beside(api, header, what)
        except WireError as error:
            connection.refuse(error)
        except Exception:
            _log.exception("request failed; closing", extra={"peer": connection.peer})
            connection.close()
        else:
            connection.complete(answer)
        finally:
            if is_held:
                connection.go_on()

    async def _encode_beside(
        self, api: Api, header: RequestHeader, response: Any
    ) -> tuple[bytes, bytes]:
        """Encode an answer; in the thread if it is long, or the first of its kind."""
        kind = (api.key, header.api_version)
        if kind in self._known_messages and not is_heavier(response, MAX_AT_ONCE_ELEMENTS):
            return self._encode(header, header.api_version, response)
        encoded = await self._aside(self._encode, header, header.api_version, response)
        self._known_messages.add(kind)
        return encoded

    async def _aside(self, work: Callable[..., _Result], *arguments: Any) -> _Result:
        """Run Python code that takes long in a thread; one at a time, for they share a lock."""
        if self._slow_thread is None:
            self._slow_thread = ThreadPoolExecutor(1, thread_name_prefix="codec")
        return await self.loop.run_in_executor(self._slow_thread, work, *arguments)

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run what a request needs beyond its turn; a stopping broker waits for it."""
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    @staticmethod
    def _encode(header: RequestHeader, version: int, response: Any) -> tuple[bytes, bytes]:
        body = encode_response(header.api_key, version, response)
        head = response_header(header.api_key, version, header.correlation_id, len(body))
        return head, body

    # --- groups

    def _open_groups(self) -> "GroupRuntime":
        # Imported here: a broker is ready before it knows what a group is.
        from headrace.broker.groups.offsets_topic import Storage
        from headrace.broker.groups.runtime import GroupRuntime

        broker = self.broker
        is_sync_required = broker.settings.bool("headrace.acks.all.sync")
        sync = self.sync if is_sync_required else None
        storage = Storage(self.committer.flush, self.waiting.notify, sync)
        groups = GroupRuntime(broker.topics, broker.settings, broker.clock, storage, self.metrics)
        broker.topics.on_delete.append(groups.on_topic_deleted)
        # Not of this coordinator only: another takes its place when the groups' topic is deleted.
        self.metrics.register(lambda: group_samples(groups.coordinator.registry))
        return groups

    # --- the end

    async def stop(self) -> None:
        """End what is still under way: afterwards nothing writes to a log, and all is known.

        A sync that failed at last must be heard of before the logs are closed, or they would
        be believed.
        """
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.committer.flush()
        self.sync.stop()
        self.checks.stop()
        self.reads.stop()
        if self._slow_thread is not None:
            self._slow_thread.shutdown()
        for _ in range(_ROUNDS_TO_HEAR):
            await asyncio.sleep(0)

    @property
    def is_quiet(self) -> bool:
        """Nothing is owed to any client."""
        return (
            self.sync.is_idle
            and not self._tasks
            and all(connection.is_quiet for connection in self.connections)
        )

    def drain(self) -> None:
        """Take no new connections and answer all that wait with what there is."""
        self.is_draining = True
        self.committer.flush()
        self.waiting.close()
        if self.broker.has_groups:
            self.broker.groups.drain()


def _decode(api: Api, version: int, body: bytes) -> Any:
    """Read a request; of the first of its kind, import its types and its handler before."""
    api.handler()
    return decode_request(api.key, version, api.schema_version, body, 0)
