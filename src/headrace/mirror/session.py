"""One session: a producer, a consumer, and everything done with them until one of them fails.

Order at the start: topic, note, checkpoint, then the first record. So whatever lies at a target is
accounted for, wherever the process is cut off.
"""

import time
from collections.abc import Callable, Collection, Iterable

from headrace.mirror.copying import Copier
from headrace.mirror.endpoint import Endpoint, MirroredTopic
from headrace.mirror.errors import MirrorError, MirrorRefusedError
from headrace.mirror.groups import Groups
from headrace.mirror.identity import SOURCE, TARGET, another_writer, gone_from_source
from headrace.mirror.interface import (
    CHECKSUMS,
    COUNTS,
    GroupMove,
    MirrorListener,
    MirrorProgress,
    Options,
    TopicSummary,
)
from headrace.mirror.interface import COPYING as COPYING_PHASE
from headrace.mirror.interface import FOLLOWING as FOLLOWING_PHASE
from headrace.mirror.partition_copy import PartitionCopy
from headrace.mirror.plan import TopicPlan
from headrace.mirror.resume import open_copies
from headrace.mirror.state import (
    COPYING,
    STATE_TOPIC,
    CheckpointKey,
    NoteKey,
    PartitionCheckpoint,
    TopicNote,
)
from headrace.mirror.state_topic import StateTopic
from headrace.mirror.targets import prepare, release
from headrace.mirror.verification import verify
from headrace.mirror.watch import TopicWatch
from headrace.mirror.writer import Writer
from headrace.model import TopicPartition
from headrace.patience import StoppedError

_STOP_S = 15.0  # how long a stop waits for what was sent; what comes later is found by the next run
_LEAST_GROUP_S = 5.0
_GROUP_SHARE = 10  # groups take at most a tenth of the time, however many there are
_LOOK_S = 5.0  # how often all of both ends is held against what it was, whatever comes


class Session:
    """Owned by one thread."""

    def __init__(
        self,
        source: Endpoint,
        target: Endpoint,
        cluster_ids: tuple[str, str],
        state: StateTopic,
        options: Options,
        listener: MirrorListener,
        groups: Groups | None,
    ) -> None:
        self._source, self._target = source, target
        self._source_id, self._target_id = cluster_ids
        self._source_watch = TopicWatch(source, SOURCE, self._source_id)
        self._target_watch = TopicWatch(target, TARGET, self._target_id)
        self._target_watch.expect(STATE_TOPIC, state.topic_id)
        self._state, self._options, self._listener = state, options, listener
        self._groups = groups
        self._writer = Writer(target, options.compression, f"headrace-mirror-{options.name}")
        self._copier = Copier(
            source,
            target,
            self._writer,
            is_following=options.is_following,
            confirm=self._confirm_topics,
        )
        # Nothing sent may stay unwatched, however long an answer takes.
        source.meanwhile = target.meanwhile = self._copier.watch
        self._facts: dict[str, MirroredTopic] = {}
        self.away = set[str]()  # topics that were deleted at the source since
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
    def topics(self) -> dict[str, MirroredTopic]:
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
                target_cluster_id=self._target_id,
                replication_factor=self._options.replication_factor,
                is_following=self._options.is_following,
            )
            self._source_watch.expect(name, note.source_topic_id)
            self._target_watch.expect(name, note.target_topic_id)
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
        # The offsets just asked for are those of the topics that were planned with.
        self._copier.add(copies)
        self._confirm_source({place.topic for place in wanted})
        self._put_checkpoints(copies.values(), is_clean=False)
        self._writer.flush()

    def run(self, look_for_news: Callable[[], None]) -> None:
        """Copy until it is complete, or until StoppedError when following."""
        interval_s = self._options.interval_s
        next_note = time.monotonic() + interval_s
        next_groups = 0.0
        next_look = time.monotonic() + _LOOK_S
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
            if now >= next_look:
                self._confirm_all()
                next_look = time.monotonic() + _LOOK_S
            if self._options.is_following:
                # What follows may take long, and nothing sent may stay unwatched meanwhile.
                self._copier.flush()
                look_for_news()
                self._complete_those_caught_up()
                if self._groups is not None and now >= next_groups:
                    self.moves = self._groups.sync(self._copies_there(), self._confirm_topics)
                    took_s = time.monotonic() - now
                    next_groups = now + max(_LEAST_GROUP_S, took_s * _GROUP_SHARE)
                self._state.shrink(self._writer, self._source_id)

    def complete(self) -> None:
        """Check what was copied, bring groups over, set configs: the end of a run."""
        self._copier.flush()
        self.copy_seconds = time.monotonic() - self.began_at
        self._complete(list(self._facts))
        if self._groups is not None:
            self.moves = self._groups.sync(self._copies_there(), self._confirm_topics)

    def explain(self, error: MirrorError) -> MirrorError:
        """What has failed may have done so because a topic is another one: then that is said."""
        self._source.is_patient = self._target.is_patient = False
        self._end_watch()
        try:
            self._confirm_all()
        except MirrorRefusedError as reason:
            return reason
        except (MirrorError, StoppedError):
            pass
        return error

    def note_positions(self, *, is_clean: bool = False) -> None:
        """Write a checkpoint of each partition that has come on."""
        self._copier.serve()
        self._put_checkpoints(
            [
                copy
                for copy in self.copies.values()
                if is_clean
                or copy.acked[:2] != copy.noted[:2]
                or copy.verified != copy.noted.verified
            ],
            is_clean=is_clean,
        )

    def stop(self) -> bool:
        """Wait for what was sent and note it as final; False when the target does not take it."""
        self._target.is_finishing = self._target.is_stopped()
        try:
            if self._target.is_finishing:
                self._target_watch.confirm({STATE_TOPIC})  # a silent one is not waited for
            if not self._writer.flush_for(_STOP_S):
                return False
            self._copier.serve()
            is_clean = all(copy.is_settled for copy in self.copies.values())
            self.note_positions(is_clean=is_clean)
            return self._writer.flush_for(_STOP_S)
        except StoppedError:  # the target could not be asked whether it is still the same
            return False
        finally:
            self._target.is_finishing = False

    def close(self) -> None:
        """Let go of both clients; what has arrived is known to the next session."""
        self._end_watch()
        self._copier.close()
        self._writer.close()  # which still brings acknowledgements
        for copy in self.copies.values():
            if copy.acked[:2] != copy.noted[:2]:
                key = CheckpointKey(self._source_id, *copy.place)
                self._state.remember(key, self._checkpoint(copy, is_clean=False))
        if not self.copy_seconds:
            self.copy_seconds = time.monotonic() - self.began_at
        if self._copier.has_changed_times:
            self._listener.note(
                "messages with the timestamp 0 have got 1 at the target: librdkafka takes 0 for now"
            )

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
                    self._verified_word(name, copies),
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
        ends = self._target.visible_ends([copy.place for copy in copies])
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
        # What was read and compared was still of these topics.
        self._confirm_all()
        self.note_positions()
        self._writer.flush()  # what was verified is noted before retention may act on it
        for name in names:
            self._verified[name] = self._options.verify
            if any(place.topic == name for place in lacking):
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

    def _put_checkpoints(self, copies: Collection[PartitionCopy], *, is_clean: bool) -> None:
        """Note how far these have come, if the target still is what took them that far."""
        if not copies:
            return
        checkpoints = [(copy, self._checkpoint(copy, is_clean=is_clean)) for copy in copies]
        self._target_watch.confirm({STATE_TOPIC, *(copy.place.topic for copy in copies)})
        for copy, checkpoint in checkpoints:
            copy.noted = checkpoint
            self._state.put(self._writer, CheckpointKey(self._source_id, *copy.place), checkpoint)

    def _checkpoint(self, copy: PartitionCopy, *, is_clean: bool) -> PartitionCheckpoint:
        note = self._note(copy.place.topic)
        return copy.checkpoint(is_clean=is_clean)._replace(
            source_topic_id=note.source_topic_id, target_topic_id=note.target_topic_id
        )

    def _end_watch(self) -> None:
        self._source.meanwhile = self._target.meanwhile = bool

    def _confirm_source(self, topics: Iterable[str]) -> set[str]:
        """Those of the topics that are gone from the source; raises when one was made anew."""
        gone = self._source_watch.confirm(set(topics) - self.away)
        for topic in sorted(gone):
            is_whole = self._is_caught_up(self._copies_of(topic))
            if not self._options.is_following and not is_whole:
                raise gone_from_source(topic)
            self._listener.note(f"topic {topic} is not at the source any more; its copy is kept")
            self._source_watch.forget(topic)
        self.away |= gone
        self._copier.leave(gone)
        return self.away & set(topics)

    def _confirm_topics(self, topics: Collection[str]) -> set[str]:
        """The same at both ends."""
        self._target_watch.confirm(topics)
        return self._confirm_source(topics)

    def _confirm_all(self) -> None:
        self._source_watch.confirm_cluster()
        self._target_watch.confirm_cluster()
        self._target_watch.confirm(self._target_watch.topics)
        self._confirm_source(self._source_watch.topics)

    def _copies_there(self) -> dict[TopicPartition, PartitionCopy]:
        return {place: it for place, it in self.copies.items() if place.topic not in self.away}

    def _verified_word(self, name: str, copies: list[PartitionCopy]) -> str:
        """How a topic was checked; of what came after the check, none is claimed."""
        word = self._verified.get(name, "no")
        if word != CHECKSUMS:
            return word
        if not all(copy.verified.is_whole for copy in copies):
            return COUNTS
        seen = sum(copy.verified.target for copy in copies)
        is_all = seen == sum(copy.acked.target for copy in copies)
        return CHECKSUMS if is_all else f"{CHECKSUMS} of {seen}"

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
            MirrorProgress(
                COPYING_PHASE if is_behind else FOLLOWING_PHASE,
                sum(min(copy.sent.source, copy.caught_up_at) - copy.started_at for copy in copies),
                sum(copy.caught_up_at - copy.started_at for copy in copies),
                sum(copy.messages for copy in copies),
                sum(copy.size_bytes for copy in copies),
                time.monotonic() - self.began_at,
            )
        )
