"""Incremental fetch sessions (KIP-227): what a consumer reads, remembered between requests. No I/O.

A session answers only for partitions that have something new; the consumer
names only partitions whose position changed.
"""

from collections import OrderedDict
from secrets import randbelow

from headrace.protocol.fetch import FetchPartition, FetchRequest

FINAL_EPOCH = -1
INITIAL_EPOCH = 0
_MAX_EPOCH = _MAX_ID = 2**31 - 1

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

    __slots__ = ("epoch", "has_topic_ids", "last_used_ms", "session_id", "watched")

    def __init__(self, session_id: int, has_topic_ids: bool, now_ms: int) -> None:
        self.session_id = session_id
        self.has_topic_ids = has_topic_ids
        self.epoch = 1
        self.last_used_ms = now_ms
        self.watched: OrderedDict[Key, Watched] = OrderedDict()

    def take_in(self, request: FetchRequest) -> None:
        """Add, change and forget partitions as the request says."""
        for topic, partitions in request.topics:
            for asked in partitions:
                known = self.watched.get((topic, asked.partition))
                if known is None:
                    self.watched[topic, asked.partition] = Watched(topic, asked)
                else:
                    known.update(asked)
        for topic, indexes in request.forgotten:
            for index in indexes:
                self.watched.pop((topic, index), None)

    def advance(self, now_ms: int) -> None:
        """Expect the next epoch; epochs wrap to 1."""
        self.epoch = self.epoch + 1 if self.epoch < _MAX_EPOCH else 1
        self.last_used_ms = now_ms

    def served(self, watched: Watched) -> None:
        """Move a partition that got data behind the others, so that all get their turn."""
        self.watched.move_to_end((watched.topic, watched.partition))


class FetchSessions:
    """All sessions of a broker, least recently used first. Event-loop thread only."""

    def __init__(self, slots: int, eviction_ms: int) -> None:
        self._slots = slots
        self._eviction_ms = eviction_ms
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()

    def __len__(self) -> int:
        return len(self._sessions)

    def get(self, session_id: int) -> FetchSession | None:
        """Return a session and note its use."""
        session = self._sessions.get(session_id)
        if session is not None:
            self._sessions.move_to_end(session_id)
        return session

    def open(self, has_topic_ids: bool, now_ms: int) -> FetchSession | None:
        """Return a new session; None when all slots are in recent use."""
        if len(self._sessions) >= self._slots and not self._evict(now_ms):
            return None
        session = FetchSession(self._unused_id(), has_topic_ids, now_ms)
        self._sessions[session.session_id] = session
        return session

    def close(self, session_id: int) -> None:
        """Forget a session; unknown ones are fine."""
        self._sessions.pop(session_id, None)

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
        del self._sessions[oldest.session_id]
        return True
