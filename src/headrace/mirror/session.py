"""One session: a producer, a consumer, and everything done with them until one of them fails.

Order at the start: topic, note, checkpoint, then the first record. So whatever lies at a target is
accounted for, wherever the process is cut off.
"""

import time
from collections.abc import Callable, Iterable

from headrace.mirror.copying import Copier, another_writer
from headrace.mirror.end import End, StoppedError
from headrace.mirror.groups import GroupMove, Groups
from headrace.mirror.listener import COPYING as COPYING_PHASE
from headrace.mirror.listener import FOLLOWING as FOLLOWING_PHASE
from headrace.mirror.listener import Listener, Progress
from headrace.mirror.options import CHECKSUMS, COUNTS, Options
from headrace.mirror.partition_copy import PartitionCopy
from headrace.mirror.plan import TopicPlan
from headrace.mirror.questions import TopicFacts, end_offsets
from headrace.mirror.resume import open_copies
from headrace.mirror.state import COPYING, CheckpointKey, NoteKey, TopicNote
from headrace.mirror.state_topic import StateTopic
from headrace.mirror.summary import TopicSummary
from headrace.mirror.targets import prepare, release
from headrace.mirror.verification import verify
from headrace.mirror.writer import Writer
from headrace.model import TopicPartition

_STOP_S = 15.0  # how long a stop waits for what was sent; what comes later is found by the next run
_LEAST_GROUP_S = 5.0
_GROUP_SHARE = 10  # groups take at most a tenth of the time, however many there are


class Session:
    """Owned by one thread."""

    def __init__(
        self,
        source: End,
        target: End,
        source_id: str,
        state: StateTopic,
        options: Options,
        listener: Listener,
        groups: Groups | None,
    ) -> None:
        self._source, self._target, self._source_id = source, target, source_id
        self._state, self._options, self._listener = state, options, listener
        self._groups = groups
        self._writer = Writer(target, options.compression, f"headrace-mirror-{options.name}")
        self._copier = Copier(
            source,
            target,
            self._writer,
            is_following=options.is_following,
            tell_once=self._tell_once,
        )
        self._told = set[str]()
        self._facts: dict[str, TopicFacts] = {}
        self._released = set[str]()  # topics on which retention may act already
        self._verified: dict[str, str] = {}
        self.began_at = time.monotonic()
        self.copy_seconds = 0.0
        self.verify_seconds = 0.0
        self.moves = list[GroupMove]()

    @property
    def copies(self) -> dict[TopicPartition, PartitionCopy]:
        return self._copier.copies

    @property
    def topics(self) -> dict[str, TopicFacts]:
        """The topics that are copied, as the source had them."""
        return self._facts

    def begin(self, plans: Iterable[TopicPlan]) -> None:
        """Make topics ready and start copying them; for new partitions of known ones too."""
        wanted = dict[TopicPartition, None]()
        is_old = set[str]()
        for plan in plans:
            name = plan.source.name
            note = prepare(
                self._target,
                plan,
                name=self._options.name,
                replication_factor=self._options.replication_factor,
                is_following=self._options.is_following,
            )
            if plan.note is not None:
                is_old.add(name)
                if plan.note.phase != COPYING:
                    self._released.add(name)
            self._writer.learn(name, plan.source.partition_count)
            self._facts[name] = plan.source
            self._state.put(self._writer, NoteKey(self._source_id, name), note)
            wanted |= dict.fromkeys(plan.source.partitions)
        self._writer.flush()
        new = [place for place in wanted if place not in self.copies]
        copies = open_copies(
            self._source,
            self._target,
            {
                place: self._state.checkpoint(self._source_id, place)
                if place.topic in is_old
                else None
                for place in new
            },
            self._listener,
        )
        for copy in copies.values():
            self._put_checkpoint(copy, is_clean=False)
        self._writer.flush()
        self._copier.add(copies)

    def run(self, look_for_news: Callable[[], None]) -> None:
        """Copy until it is complete, or until StoppedError when following."""
        interval_s = self._options.interval_s
        next_note = time.monotonic() + interval_s
        next_groups = 0.0
        while self._options.is_following or not self._is_caught_up(self.copies.values()):
            if self._source.is_stopped():
                raise StoppedError
            self._copier.step()
            self._tell_progress()
            now = time.monotonic()
            if now < next_note:
                continue
            self._copier.check_stalls()
            next_note = now + interval_s
            self.note_positions()
            if self._options.is_following:
                # What follows may take long, and nothing sent may stay unwatched meanwhile.
                self._copier.flush()
                look_for_news()
                self._complete_those_caught_up()
                if self._groups is not None and now >= next_groups:
                    self.moves = self._groups.sync(self.copies)
                    took_s = time.monotonic() - now
                    next_groups = now + max(_LEAST_GROUP_S, took_s * _GROUP_SHARE)
                self._state.shrink(self._writer, self._source_id)

    def complete(self) -> None:
        """Check what was copied, bring groups over, set configs: the end of a run."""
        self._copier.flush()
        self.copy_seconds = time.monotonic() - self.began_at
        self._complete(list(self._facts))
        if self._groups is not None:
            self.moves = self._groups.sync(self.copies)

    def note_positions(self, *, is_clean: bool = False) -> None:
        """Write a checkpoint of each partition that has come on."""
        self._copier.serve()
        for copy in self.copies.values():
            if is_clean or copy.acked[:2] != copy.noted[:2] or copy.verified != copy.noted.verified:
                self._put_checkpoint(copy, is_clean=is_clean)

    def stop(self) -> bool:
        """Wait for what was sent and note it as final; False when the target does not take it."""
        if not self._writer.flush_for(_STOP_S):
            return False
        self._copier.serve()
        is_clean = all(copy.is_settled for copy in self.copies.values())
        self.note_positions(is_clean=is_clean)
        return self._writer.flush_for(_STOP_S)

    def close(self) -> None:
        """Let go of both clients; what has arrived is known to the next session."""
        for copy in self.copies.values():
            if copy.acked[:2] != copy.noted[:2]:
                key = CheckpointKey(self._source_id, *copy.place)
                self._state.remember(key, copy.checkpoint(is_clean=False))
        if not self.copy_seconds:
            self.copy_seconds = time.monotonic() - self.began_at
        if self._copier.has_changed_times:
            self._listener.note(
                "messages with the timestamp 0 have got 1 at the target: librdkafka takes 0 for now"
            )
        self._copier.close()
        self._writer.close()

    def summary(self) -> list[TopicSummary]:
        """What was done for each topic."""
        found = list[TopicSummary]()
        for name in sorted(self._facts):
            copies = self._copies_of(name)
            found.append(
                TopicSummary(
                    name,
                    len(copies),
                    sum(copy.arrived for copy in copies),
                    sum(copy.size_bytes for copy in copies),
                    sum(copy.acked.target for copy in copies),
                    self._verified.get(name, "no"),
                )
            )
        return found

    def _complete_those_caught_up(self) -> None:
        ready = [
            name
            for name in self._facts
            if self._note(name).phase == COPYING and self._is_caught_up(self._copies_of(name))
        ]
        if ready:
            self._complete(ready)

    def _complete(self, names: list[str]) -> None:
        copies = [copy for name in names for copy in self._copies_of(name)]
        ends = end_offsets(self._target, [copy.place for copy in copies])
        for copy in copies:
            if ends[copy.place] != copy.acked.target:
                raise another_writer(copy.place, copy.acked.target, ends[copy.place])
        began_at = time.monotonic()
        lacking = set[TopicPartition]()
        if self._options.verify == CHECKSUMS:
            lacking = verify(
                self._target, copies, self._listener, may_lack=self._released.__contains__
            )
        self.verify_seconds += time.monotonic() - began_at
        self.note_positions()
        self._writer.flush()  # what was verified is noted before retention may act on it
        for name in names:
            is_whole = not any(place.topic == name for place in lacking)
            self._verified[name] = self._options.verify if is_whole else COUNTS
            if not is_whole:
                self._listener.note(
                    f"{name}: retention or compaction has taken messages at the target since the "
                    "last run, so only counts were compared"
                )
            note = release(
                self._target,
                self._facts[name],
                self._note(name),
                self._listener,
                is_following=self._options.is_following,
            )
            self._state.put(self._writer, NoteKey(self._source_id, name), note)
            self._released.add(name)

    def _tell_once(self, sentence: str) -> None:
        if sentence not in self._told:
            self._told.add(sentence)
            self._listener.note(sentence)

    def _put_checkpoint(self, copy: PartitionCopy, *, is_clean: bool) -> None:
        copy.noted = copy.checkpoint(is_clean=is_clean)
        self._state.put(self._writer, CheckpointKey(self._source_id, *copy.place), copy.noted)

    def _note(self, name: str) -> TopicNote:
        note = self._state.note(self._source_id, name)
        assert note is not None, "written when the topic was begun"
        return note

    def _copies_of(self, name: str) -> list[PartitionCopy]:
        return [copy for place, copy in self.copies.items() if place.topic == name]

    @staticmethod
    def _is_caught_up(copies: Iterable[PartitionCopy]) -> bool:
        return all(copy.is_caught_up and copy.overlap is None for copy in copies)

    def _tell_progress(self) -> None:
        copies = self.copies.values()
        is_behind = not self._is_caught_up(copies)
        self._listener.progress(
            Progress(
                COPYING_PHASE if is_behind else FOLLOWING_PHASE,
                sum(min(copy.sent.source, copy.caught_up_at) - copy.started_at for copy in copies),
                sum(copy.caught_up_at - copy.started_at for copy in copies),
                sum(copy.messages for copy in copies),
                sum(copy.size_bytes for copy in copies),
                time.monotonic() - self.began_at,
            )
        )
