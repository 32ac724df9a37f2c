"""A run that reads what it writes, or writes one place twice, is refused before it starts.

The first never comes to an end. In the second both sinks keep one note, and what one has written
the other takes for its own. Where rows name their topics nobody knows them before; each is refused
when a row first names it.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from headrace.pipelines.definition import Sink, Source
from headrace.pipelines.errors import PipelineDefinitionError
from headrace.pipelines.sinks.topic import TopicSink
from headrace.pipelines.source import TopicSource, matches


@dataclass(frozen=True, slots=True)
class TopicsInUse:
    """The topics that a run has a use for already. Travels to Spark's workers."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    dead_letter_topic: str | None = None  # None: the run has no dead letters
    written: frozenset[str] = frozenset()  # those that sinks of the run are named after

    @classmethod
    def of(
        cls, source: Source, dead_letter_topic: str | None = None, sinks: Iterable[Sink] = ()
    ) -> "TopicsInUse":
        """Those of a run; a source that is no topic reads none."""
        written = frozenset(
            sink.topic for sink in sinks if isinstance(sink, TopicSink) and sink.topic
        )
        if not isinstance(source, TopicSource):
            return cls(dead_letter_topic=dead_letter_topic, written=written)
        return cls(source.topics, source.pattern, dead_letter_topic, written)

    def is_read(self, topic: str) -> bool:
        """Whether the run reads a topic, or will as soon as it is there."""
        if self.pattern is not None:
            return matches(self.pattern, topic)
        return topic in self.topics

    def refuse(self, topic: str) -> str | None:
        """Why a topic may not be written, in one sentence; None if it may."""
        if self.is_read(topic):
            how = f" (it matches {self.pattern})" if self.pattern is not None else ""
            return (
                f"topic {topic} would be read and written{how}, so its records would be there "
                "twice, or come round for ever; write to another topic"
            )
        if topic == self.dead_letter_topic:
            return (
                f"topic {topic} is where the dead letters of this run go; write to another topic, "
                "or name another for them with --dead-letter-topic"
            )
        return None

    def refuse_row(self, topic: str) -> str | None:
        """The same for a topic that a row names."""
        if topic in self.written:
            return (
                f"a row names topic {topic}, which the run writes to by a sink of its own: its "
                "records would be there twice; leave out that sink, or have rows name another"
            )
        return self.refuse(topic)


def refuse_duplicates(sinks: Iterable[Sink]) -> None:
    """Raise PipelineDefinitionError if two sinks are one place."""
    seen = set[str]()
    for sink in sinks:
        if sink.place() in seen and not sink.is_trial:
            raise PipelineDefinitionError(
                f"the run would write each row to {sink.describe()} twice; name it once"
            )
        seen.add(sink.place())


def refuse_loops(
    source: Source, sinks: Iterable[Sink], dead_letter_topic: str | None = None, unless: str = ""
) -> None:
    """Raise PipelineDefinitionError if a run would read what it writes.

    `unless` names what would allow it, where something does.
    """
    in_use = TopicsInUse.of(source, dead_letter_topic)
    if dead_letter_topic is not None and in_use.is_read(dead_letter_topic):
        raise PipelineDefinitionError(
            f"the dead letters of this run would go to {dead_letter_topic}, which it reads; "
            "name another topic for them with --dead-letter-topic, or do not read that one"
        )
    for sink in sinks:
        if not isinstance(sink, TopicSink) or sink.topic is None or sink.may_loop:
            continue
        if reason := in_use.refuse(sink.topic):
            raise PipelineDefinitionError(f"{reason}, or {unless}" if unless else reason)
