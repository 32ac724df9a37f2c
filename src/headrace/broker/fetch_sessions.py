"""Incremental fetch sessions (KIP-227): what a consumer reads, remembered between requests. No I/O.

A session answers only for partitions that have something new; the consumer
names only partitions whose position changed.
"""

from collections import OrderedDict
from collections.abc import Generator
from secrets import randbelow

from kio.schema.errors import ErrorCode

from headrace.protocol.fetch import FetchPartition, FetchRequest

FINAL_EPOCH = -1
INITIAL_EPOCH = 0
_MAX_EPOCH = _MAX_ID = 2**31 - 1
# Partitions in all sessions together, at about 400 bytes each: 100 MB. Fifty consumers of 5,000
# partitions each fit; who comes later fetches without a session, as when all slots are taken.
MAX_PARTITIONS = 250_000
# Partitions that are taken in between two steps: a quarter of a millisecond.
_STEP_PARTITIONS = 256

Key = tuple[bytes, int]


class Watched:
    """One partition of a fetch, and what was last told about it."""

    __slots__ = ("high_watermark", "leader_epoch", "log_start_offset", "max_bytes", "offset",
                 "partition", "topic")  # fmt: skip

    def __init__(self, topic: bytes, asked: FetchPartition) -> None:
        self.topic = topic
        self.partition, self.leader_epoch, self.offset, self.max_bytes = asked
        self.high_watermark = -1
        self.log_start_offset = -1

    def update(self, asked: FetchPartition) -> None:
        """Take the position that an incremental request names."""
        _, self.leader_epoch, self.offset, self.max_bytes = asked


class FetchSession:
    """The partitions of one session, those served longest ago first."""

    __slots__ = ("counted", "epoch", "has_topic_ids", "last_used_ms", "session_id", "watched")

    def __init__(self, session_id: int, has_topic_ids: bool, now_ms: int) -> None:
        self.session_id = session_id
        self.has_topic_ids = has_topic_ids
        self.epoch = 1
        self.last_used_ms = now_ms
        self.counted = 0  # partitions that FetchSessions has counted for it
        self.watched: OrderedDict[Key, Watched] = OrderedDict()

    def take_in(self, request: FetchRequest) -> Generator[None, None, None]:
        """Add, change and forget partitions as the request says, in steps if they are many."""
        left = _STEP_PARTITIONS
        for topic, partitions in request.topics:
            for asked in partitions:
                known = self.watched.get((topic, asked.partition))
                if known is None:
                    self.watched[topic, asked.partition] = Watched(topic, asked)
                else:
                    known.update(asked)
                left -= 1
                if not left:
                    left = _STEP_PARTITIONS
                    yield
        for topic, indexes in request.forgotten:
            for index in indexes:
                self.watched.pop((topic, index), None)
                left -= 1
                if not left:
                    left = _STEP_PARTITIONS
                    yield

    def advance(self, now_ms: int) -> None:
        """Expect the next epoch; epochs wrap to 1."""
        self.epoch = self.epoch + 1 if self.epoch < _MAX_EPOCH else 1
        self.last_used_ms = now_ms

    def served(self, watched: Watched) -> None:
        """Move a partition that got data behind the others, so that all get their turn."""
        key = (watched.topic, watched.partition)
        if key in self.watched:  # else another request has just forgotten it
            self.watched.move_to_end(key)


class FetchSessions:
    """All sessions of a broker, least recently used first. Event-loop thread only."""

    def __init__(self, slots: int, eviction_ms: int, max_partitions: int = MAX_PARTITIONS) -> None:
        self._slots = slots
        self._eviction_ms = eviction_ms
        self._max_partitions = max_partitions
        self.partition_count = 0
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()

    def __len__(self) -> int:
        return len(self._sessions)

    def find(
        self, request: FetchRequest, has_ids: bool, now_ms: int
    ) -> Generator[None, None, tuple[ErrorCode, FetchSession | None]]:
        """(error, session) of a request; no session where it asks for none or there is no room."""
        if request.session_epoch > INITIAL_EPOCH:
            session = self.get(request.session_id)
            if session is None:
                return ErrorCode.fetch_session_id_not_found, None
            if session.epoch != request.session_epoch:
                return ErrorCode.invalid_fetch_session_epoch, None
            if session.has_topic_ids != has_ids:
                return ErrorCode.fetch_session_topic_id_error, None
            session.advance(now_ms)
            if request.topics or request.forgotten:
                yield from session.take_in(request)
                if not self.settle(session, now_ms):
                    return ErrorCode.fetch_session_id_not_found, None
            return ErrorCode.none, session
        if request.session_id:
            self.close(request.session_id)
        if request.session_epoch == FINAL_EPOCH or not request.topics:
            return ErrorCode.none, None
        partitions = sum([len(asked) for _, asked in request.topics])
        session = self.open(has_ids, now_ms, partitions)
        if session is not None:
            yield from session.take_in(request)
            if not self.settle(session, now_ms):
                session = None
        return ErrorCode.none, session

    def get(self, session_id: int) -> FetchSession | None:
        """Return a session and note its use."""
        session = self._sessions.get(session_id)
        if session is not None:
            self._sessions.move_to_end(session_id)
        return session

    def open(self, has_topic_ids: bool, now_ms: int, partitions: int) -> FetchSession | None:
        """Return a new session for `partitions`; None when all there is room for is in use."""
        if len(self._sessions) >= self._slots and not self._evict(now_ms):
            return None
        if not self._make_room(partitions, now_ms):
            return None
        session = FetchSession(self._unused_id(), has_topic_ids, now_ms)
        self._sessions[session.session_id] = session
        self._count(session, partitions)
        return session

    def settle(self, session: FetchSession, now_ms: int) -> bool:
        """Count what a session has become; False, and it is gone, when that is too much."""
        if self._sessions.get(session.session_id) is not session:
            return False
        self._count(session, len(session.watched))
        if self.partition_count <= self._max_partitions or self._make_room(0, now_ms):
            return session.session_id in self._sessions
        self.close(session.session_id)
        return False

    def close(self, session_id: int) -> None:
        """Forget a session; unknown ones are fine."""
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self.partition_count -= session.counted

    def _count(self, session: FetchSession, partitions: int) -> None:
        self.partition_count += partitions - session.counted
        session.counted = partitions

    def _make_room(self, partitions: int, now_ms: int) -> bool:
        while self.partition_count + partitions > self._max_partitions:
            if not self._evict(now_ms):
                return False
        return True

    def _unused_id(self) -> int:
        # Drawn, not counted: a consumer may name a session of the broker's life before this one,
        # and would read, silently, what another consumer asked for under the same number.
        while (drawn := 1 + randbelow(_MAX_ID)) in self._sessions:
            pass
        return drawn

    def _evict(self, now_ms: int) -> bool:
        if not self._sessions:
            return False
        oldest = next(iter(self._sessions.values()))
        if now_ms - oldest.last_used_ms < self._eviction_ms:
            return False
        self.close(oldest.session_id)
        return True
