"""Positions of consumer groups, brought to the target.

A group with members at the target is left alone, and no position moves back unless asked for.
Positions are read and committed by consumers of the group that never join it: librdkafka's admin
client can end the process when a broker dies during such a call.
"""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.mirror.end import End
from headrace.mirror.listener import Listener
from headrace.mirror.partition_copy import PartitionCopy
from headrace.mirror.questions import first_offsets
from headrace.mirror.translation import Translator
from headrace.mirror.watch import Confirm
from headrace.model import TopicPartition

if TYPE_CHECKING:
    from confluent_kafka import Consumer

_KINDS = frozenset({"CLASSIC", "CONSUMER"})
_ASIDE = frozenset({"EMPTY", "DEAD"})  # states of a group that nobody is a member of


class Position(NamedTuple):
    """What a group has committed of one partition."""

    offset: int
    metadata: str


class GroupMove(NamedTuple):
    """One group's place in one partition, on both sides; `target` None: left alone."""

    group: str
    place: TopicPartition
    source: int
    target: int | None


class Groups:
    """Syncs again and again; tells each oddity once."""

    def __init__(
        self,
        source: End,
        target: End,
        listener: Listener,
        pattern: re.Pattern[str],
        *,
        is_rewinding: bool,
    ) -> None:
        self._source, self._target, self._listener = source, target, listener
        self._pattern = pattern
        self._is_rewinding = is_rewinding
        self._translator = Translator(source)
        self._told = set[str]()
        self._done: dict[str, dict[TopicPartition, Position]] = {}
        self._stands: dict[str, dict[TopicPartition, int]] = {}  # at the target, when last seen

    def names(self) -> list[str]:
        """The groups of the source that are wanted, share groups and the like told of once."""
        wanted = list[str]()
        for group in _listed(self._source):
            if not self._pattern.fullmatch(group.group_id):
                continue
            if group.type.name in _KINDS:
                wanted.append(group.group_id)
            else:
                self._tell(f"group {group.group_id} is neither classic nor consumer: left out")
        return sorted(wanted)

    def sync(
        self, copies: Mapping[TopicPartition, PartitionCopy], confirm: Confirm
    ) -> list[GroupMove]:
        """Bring every position over; returns those of groups that have any."""
        names = self.names()
        busy = {each.group_id for each in _listed(self._target) if each.state.name not in _ASIDE}
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
        positions: Mapping[TopicPartition, Position],
        copies: Mapping[TopicPartition, PartitionCopy],
        confirm: Confirm,
    ) -> list[GroupMove]:
        starts = first_offsets(self._target, positions)
        wanted = dict[TopicPartition, Position]()
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
        self, group: str, wanted: Mapping[TopicPartition, Position]
    ) -> dict[TopicPartition, int] | None:
        """Where the group stands afterwards; None if the target took nothing."""
        from confluent_kafka import KafkaException

        consumer = self._target.consumer({"group.id": group})
        try:
            there = _committed(self._target, consumer, wanted)
            moved = {
                place: at for place, at in wanted.items() if self._is_moving(there.get(place), at)
            }
            if moved:
                places = [_place(place, at) for place, at in moved.items()]
                answers = consumer.commit(offsets=places, asynchronous=False)
                for answer in answers or ():
                    if answer.error is not None:
                        raise KafkaException(answer.error)
        except KafkaException as error:
            self._tell(f"positions of group {group} were not taken: {error.args[0].str()}")
            return None
        finally:
            consumer.close()
        return {place: at.offset for place, at in ({**there, **moved}).items() if place in wanted}

    def _is_moving(self, there: Position | None, wanted: Position) -> bool:
        if there is None or wanted.offset > there.offset:
            return True
        return self._is_rewinding and wanted.offset < there.offset

    def _tell(self, sentence: str) -> None:
        if sentence not in self._told:
            self._told.add(sentence)
            self._listener.note(sentence)


def read_positions(
    end: End, group: str, places: Mapping[TopicPartition, object]
) -> dict[TopicPartition, Position]:
    """What a group has committed of these partitions."""
    consumer = end.consumer({"group.id": group})
    try:
        return _committed(end, consumer, places)
    finally:
        consumer.close()


def _committed(
    end: End, consumer: "Consumer", places: Mapping[TopicPartition, object]
) -> dict[TopicPartition, Position]:
    from confluent_kafka import KafkaException
    from confluent_kafka import TopicPartition as Place

    def ask() -> dict[TopicPartition, Position]:
        found = dict[TopicPartition, Position]()
        for each in consumer.committed([Place(*place) for place in places], end.timeout_s):
            if each.error is not None:
                raise KafkaException(each.error)
            if each.offset >= 0:
                # confluent_kafka adds a NUL to each text it commits.
                text = (each.metadata or "").rstrip("\0")
                found[TopicPartition(each.topic, each.partition)] = Position(each.offset, text)
        return found

    return end.ask(ask)


def _place(place: TopicPartition, at: Position) -> Any:
    from confluent_kafka import TopicPartition as Place

    # It takes no None for a text that is not there.
    return Place(*place, at.offset, at.metadata) if at.metadata else Place(*place, at.offset)


def _listed(end: End) -> list[Any]:
    answer = end.ask_admin(lambda: end.admin.list_consumer_groups(request_timeout=end.timeout_s))
    return list(answer.valid)
