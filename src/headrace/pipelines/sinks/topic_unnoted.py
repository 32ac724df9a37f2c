"""Which topics a run of a topic sink has to look at: those that hold more than is noted.

Rows may name any topic of the bus, and most of those that grow are not ours. So a topic is looked
at when a batch first names it; until then its noted end stays as it was, for this run as for those
after it.
"""

from collections.abc import Callable, Mapping

from headrace.pipelines.definition import Run
from headrace.pipelines.sinks.topic_leftovers import Leftovers
from headrace.pipelines.sinks.topic_marks import Marks
from headrace.pipelines.sinks.topic_notes import Note, TopicEnd, unknown_from
from headrace.pipelines.spans import Batch


class Unnoted:
    """What is behind the noted ends when a run begins to write. Used by one thread."""

    def __init__(self, run: Run, note: Note, found: Mapping[str, TopicEnd]) -> None:
        """`found`: where the topics end that the run may write to."""
        self._run = run
        self._note = note
        self._noted = note.ends
        self._starts, self._renewed = unknown_from(note.ends, found)
        self._ends = {
            (topic, number): offset
            for topic, end in found.items()
            for number, offset in end.offsets.items()
        }
        self._looks = list[Leftovers]()
        # Topics that nobody has looked at though they hold something.
        self._unseen = {each[0] for each, start in self._starts.items() if start < self._ends[each]}

    def of(self, batch: Batch, named: Callable[[], set[str]]) -> Marks:
        """What of a batch is there; `named` gives the topics that its rows name."""
        if not self._looks:
            # Where a dead attempt wrote, records may still come.
            self._look_at(self._note.topics | named())
        elif self._unseen and (new := self._unseen & named()):
            self._look_at(new)
        marks = Marks()
        for look in self._looks:
            marks.add_all(look.of(batch))
        return marks

    def passed(self, batch: Batch, ends: Mapping[str, TopicEnd]) -> Mapping[str, TopicEnd]:
        """A batch is written; gives those of the topics' ends that may be noted with it."""
        for look in self._looks:
            look.passed(batch)
        if not all(look.is_over for look in self._looks):
            return self._noted
        seen = {topic: end for topic, end in ends.items() if topic not in self._unseen}
        unseen = {topic: end for topic, end in self._noted.items() if topic in self._unseen}
        self._noted = seen | unseen
        return self._noted

    def _look_at(self, topics: set[str] | frozenset[str]) -> None:
        for topic in self._renewed:
            if topic in topics:
                self._run.tell(
                    f"topic {topic} was deleted and made again since this run last wrote to it; "
                    "what was on it is not written again"
                )
        starts = {each: start for each, start in self._starts.items() if each[0] in topics}
        self._looks.append(
            Leftovers(
                self._run.bus,
                self._run.app_id,
                starts,
                {each: self._ends[each] for each in starts},
                is_settling=self._note.is_begun and not self._looks,
            )
        )
        self._unseen -= topics
