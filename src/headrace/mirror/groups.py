"""Positions of consumer groups, brought to the target.

A group with members at the target is left alone, and no position moves back unless asked for.
Positions are read and committed by consumers of the group that never join it: librdkafka's admin
client can end the process when a broker dies under a question to a group's coordinator.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

from headrace.client.librdkafka import error_of, places
from headrace.mirror.endpoint import Endpoint, EndpointError
from headrace.mirror.interface import GroupMove, MirrorListener
from headrace.mirror.offset_map import Interval
from headrace.mirror.partition_copy import PartitionCopy
from headrace.mirror.reading import read
from headrace.mirror.watch import Confirm
from headrace.model import TopicPartition

_PROTOCOLS = frozenset({"classic", "consumer"})
_MOST_KNOWN = 1000  # offsets of a partition; a following mirror meets new ones all the time
_Answer = TypeVar("_Answer")
_ASIDE = frozenset({"Empty", "Dead"})  # states of a group that nobody is a member of


class CommittedOffset(NamedTuple):
    """What a group has committed of one partition."""

    offset: int
    metadata: str


class Groups:
    """Syncs again and again; tells each oddity once."""

    def __init__(
        self,
        source: Endpoint,
        target: Endpoint,
        listener: MirrorListener,
        pattern: re.Pattern[str],
        *,
        is_rewinding: bool,
    ) -> None:
        self._source, self._target, self._listener = source, target, listener
        self._pattern = pattern
        self._is_rewinding = is_rewinding
        self._translator = Translator(source)
        self._told = set[str]()
        self._done: dict[str, dict[TopicPartition, CommittedOffset]] = {}
        self._stands: dict[str, dict[TopicPartition, int]] = {}  # at the target, when last seen

    def names(self) -> list[str]:
        """The groups of the source that are wanted; those left out are told of once."""
        wanted = list[str]()
        listed = self._source.list_groups()
        for error in listed.errors:
            self._tell(f"groups of a broker that does not answer are left out: {error}")
        for group in listed.groups:
            if not self._pattern.fullmatch(group.name):
                continue
            if group.protocol in _PROTOCOLS:
                wanted.append(group.name)
            else:
                self._tell(f"group {group.name} is neither classic nor consumer: left out")
        return sorted(wanted)

    def sync(
        self, copies: Mapping[TopicPartition, PartitionCopy], confirm: Confirm
    ) -> list[GroupMove]:
        """Bring every position over; returns those of groups that have any."""
        names = self.names()
        busy = {each.name for each in self._target.list_groups().groups if each.state not in _ASIDE}
        moves = list[GroupMove]()
        for name in names:
            positions = read_positions(self._source, name, copies)
            if not positions:
                continue
            if name in busy:
                self._tell(f"group {name} has members at the target: its positions are left alone")
                moves += [GroupMove(name, it, at.offset, None) for it, at in positions.items()]
            else:
                moves += self._bring(name, positions, copies, confirm)
        self._done = {name: it for name, it in self._done.items() if name in set(names)}
        return moves

    def _bring(
        self,
        group: str,
        positions: Mapping[TopicPartition, CommittedOffset],
        copies: Mapping[TopicPartition, PartitionCopy],
        confirm: Confirm,
    ) -> list[GroupMove]:
        starts = self._target.oldest_offsets(positions)
        wanted = dict[TopicPartition, CommittedOffset]()
        for place, position in positions.items():
            translated = self._translator.translate(copies[place], position.offset)
            if not translated.is_exact:
                self._tell(
                    f"group {group} stands in a part of {place} that the source has compacted "
                    "since it was copied: it will read some messages again"
                )
            wanted[place] = position._replace(offset=max(translated.offset, starts[place]))
        new = {
            place: at for place, at in wanted.items() if self._done.get(group, {}).get(place) != at
        }
        # What was read and counted was of the topics that were copied.
        gone = confirm({place.topic for place in new})
        new = {place: at for place, at in new.items() if place.topic not in gone}
        stands = self._stands.setdefault(group, {})
        if new and (found := self._commit(group, new)) is not None:
            self._done[group] = wanted
            stands |= found
            for place, offset in found.items():
                if offset > wanted[place].offset:
                    self._tell(
                        f"group {group} stands at {offset} of {place} at the target, beyond "
                        f"{wanted[place].offset}, where it stands at the source: left there; "
                        "--rewind-groups moves it back"
                    )
        return [
            GroupMove(group, place, position.offset, stands.get(place))
            for place, position in positions.items()
        ]

    def _commit(
        self, group: str, wanted: Mapping[TopicPartition, CommittedOffset]
    ) -> dict[TopicPartition, int] | None:
        """Where the group stands afterwards; None if the target took nothing."""

        def commit(consumer: Any) -> dict[TopicPartition, int]:
            there = _committed(consumer, wanted, self._target.timeout_s)
            moved = {
                place: at for place, at in wanted.items() if self._is_moving(there.get(place), at)
            }
            if moved:
                committing = [each for place, at in moved.items() for each in _written(place, at)]
                for answer in consumer.commit(offsets=committing, asynchronous=False) or ():
                    if answer.error is not None:
                        raise error_of(answer.error)
            stands = {**there, **moved}
            return {place: at.offset for place, at in stands.items() if place in wanted}

        try:
            return _as_group(self._target, group, commit)
        except EndpointError as error:
            self._tell(f"positions of group {group} were not taken: {error}")
            return None

    def _is_moving(self, there: CommittedOffset | None, wanted: CommittedOffset) -> bool:
        if there is None or wanted.offset > there.offset:
            return True
        return self._is_rewinding and wanted.offset < there.offset

    def _tell(self, sentence: str) -> None:
        if sentence not in self._told:
            self._told.add(sentence)
            self._listener.note(sentence)


def read_positions(
    end: Endpoint, group: str, partitions: Mapping[TopicPartition, object]
) -> dict[TopicPartition, CommittedOffset]:
    """What a group has committed of these partitions."""
    return _as_group(end, group, lambda consumer: _committed(consumer, partitions, end.timeout_s))


def _as_group(end: Endpoint, group: str, do: Callable[[Any], _Answer]) -> _Answer:
    """What comes of a consumer of the group that never joins it; done again while that may help.

    Its calls block, the commit for as long as nobody answers: so it lives in a thread.
    """

    def attempt() -> _Answer:
        # What it complains of is heard from its answers: listeners belong to the mirror's thread.
        consumer = end.consumer({"group.id": group, "error_cb": bool})
        try:
            return do(consumer)
        finally:
            consumer.close()

    return end.ask(lambda: end.call(attempt))


def _committed(
    consumer: Any, partitions: Iterable[TopicPartition], timeout_s: float
) -> dict[TopicPartition, CommittedOffset]:
    found = dict[TopicPartition, CommittedOffset]()
    for each in consumer.committed(places(dict.fromkeys(partitions, 0)), timeout_s):
        if each.error is not None:
            raise error_of(each.error)
        if each.offset >= 0:
            # confluent_kafka adds a NUL to each text it commits.
            text = (each.metadata or "").rstrip("\0")
            found[TopicPartition(each.topic, each.partition)] = CommittedOffset(each.offset, text)
    return found


def _written(place: TopicPartition, at: CommittedOffset) -> list[Any]:
    return places({place: at.offset}, at.metadata)


class Translated(NamedTuple):
    """`is_exact` is False when the source was compacted since: then it is earlier, never later."""

    offset: int
    is_exact: bool = True


class Translator:
    """A group's source offset as the target offset of the same record.

    Remembers what it had to read for.
    """

    def __init__(self, source: Endpoint) -> None:
        self._source = source
        self._known: dict[TopicPartition, dict[int, Translated]] = {}

    def translate(self, copy: PartitionCopy, source_offset: int) -> Translated:
        """Count the records before an offset; those not yet copied do not count."""
        if (exact := copy.map.exact(source_offset)) is not None:
            return Translated(exact)
        known = self._known.setdefault(copy.place, {})
        if len(known) > _MOST_KNOWN:
            known.clear()
        if source_offset not in known:
            interval = copy.map.interval(source_offset)
            known[source_offset] = self._count(copy.place, interval, source_offset)
        return known[source_offset]

    def _count(self, place: TopicPartition, interval: Interval, source_offset: int) -> Translated:
        low, high = interval
        assert high is not None, "behind the newest pair every offset is known"
        before, total = 0, 0
        for _, messages in read(self._source, {place: range(low.source, high.source)}):
            total += len(messages)
            before += sum(1 for each in messages if int(each.offset() or 0) < source_offset)
        if total != high.target - low.target:
            return Translated(low.target, is_exact=False)
        return Translated(low.target + before)
