"""What the broker says of topics and their offsets, asked by librdkafka before Spark starts.

Spark's connector waits for a dead broker without a word and names missing topics in Java; here
each of these is one sentence, within `timeout_s`.
"""

import difflib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from headrace.client.admin import DEFAULT_TIMEOUT_S, Admin
from headrace.client.bus import READ_COMMITTED, READ_UNCOMMITTED, Bus
from headrace.client.error_table import is_silence
from headrace.client.errors import BusError, PropertyError
from headrace.client.librdkafka import Partition
from headrace.model import INTERNAL_TOPICS
from headrace.pipelines.errors import SourceError

_NEAR_NAMES = 3  # more than three suggestions are a list, not a hint


class BusSilentError(SourceError):
    """The bus gave no answer, or a partition had no leader; a run may ask again."""

    is_retriable = True


@dataclass(frozen=True, slots=True)
class BusIdentity:
    """Which cluster answers, and which topics it has under some names."""

    cluster_id: str  # empty: it gives none
    topic_ids: Mapping[str, str]  # those that are there; empty where the broker gives none


class TopicPositions:
    """One connection to the bus for questions. Every question may raise SourceError."""

    def __init__(
        self, bus: Bus, timeout_s: float = DEFAULT_TIMEOUT_S, isolation_level: str | None = None
    ) -> None:
        """`isolation_level` decides where a topic with open transactions ends; None: the bus's."""
        self._isolation_level = isolation_level or bus.isolation_level
        if self._isolation_level not in (READ_COMMITTED, READ_UNCOMMITTED):
            raise SourceError(
                f"isolation.level={self._isolation_level}: write {READ_COMMITTED} or "
                f"{READ_UNCOMMITTED}"
            )
        self._admin = Admin(bus, timeout_s=timeout_s)

    def topics(self, *, has_internal: bool = False) -> dict[str, list[int]]:
        """All topics with their partitions; those the broker keeps for itself only if asked."""
        with asked_of(self._admin):
            known = self._admin.metadata().topics
        return {
            name: sorted(topic.partitions)
            for name, topic in known.items()
            if has_internal or name not in INTERNAL_TOPICS
        }

    def partitions(self, topics: Iterable[str]) -> list[Partition]:
        """The partitions of these topics; SourceError names a topic that is not there."""
        known = self.topics(has_internal=True)
        wanted = list(dict.fromkeys(topics))
        for name in wanted:
            if name not in known:
                raise SourceError(missing_topic(name, known, self._admin.bus.bootstrap))
        return [(name, number) for name in wanted for number in known[name]]

    def identity(self, topics: Iterable[str]) -> BusIdentity:
        """Who answers; a topic that is not there has no id."""
        with asked_of(self._admin):
            return BusIdentity(self._admin.cluster_id(), self._admin.topic_ids(topics))

    def oldest(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """The first offset each partition still has."""
        with asked_of(self._admin):
            return self._admin.oldest_offsets(partitions)

    def ends(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """The offset the next record of each partition gets."""
        with asked_of(self._admin):
            return self._admin.end_offsets(partitions, self._isolation_level)

    def at(self, time_ms: int, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """The first offset whose record is not older than `time_ms`; the end where all are."""
        with asked_of(self._admin):
            return self._admin.offsets_at(time_ms, partitions, self._isolation_level)

    def has_times_in_order(self, topics: Iterable[str]) -> dict[str, bool]:
        """Whether the broker itself stamps a topic's records: then later offset, later time.

        Only true while nobody has changed `message.timestamp.type` since the oldest record.
        """
        found = dict[str, bool]()
        for name in topics:
            try:
                configs = {each.name: each.value for each in self._admin.configs("topic", name)}
            except BusError:
                found[name] = False  # not allowed to look: assume the worse
                continue
            if "message.timestamp.type" in configs:
                found[name] = configs["message.timestamp.type"] == "LogAppendTime"
        return found


@contextmanager
def asked_of(admin: Admin) -> Iterator[None]:
    """Turn what the bus says no with into a SourceError; BusSilentError where it may pass."""
    try:
        yield
    except PropertyError as error:
        raise SourceError(str(error)) from error
    except BusError as error:
        bootstrap = admin.bus.bootstrap
        if error.reason is None:
            # At the start nobody waits for a bus that is not there.
            raise SourceError(
                f"{error}; start one with 'headrace serve' or name another bootstrap server"
            ) from error
        sentence = str(error) if is_silence(error.reason) else f"{bootstrap}: {error.reason.str()}"
        raise (BusSilentError if error.is_passing else SourceError)(sentence) from error


def missing_topic(name: str, known: Mapping[str, object] | Iterable[str], bootstrap: str) -> str:
    """The sentence for a topic that is not there, with those whose names are near."""
    near = difflib.get_close_matches(name, list(known), _NEAR_NAMES)
    hint = f"; did you mean {' or '.join(near)}?" if near else ";"
    return f"there is no topic {name} at {bootstrap}{hint} 'headrace topics create {name}' makes it"
