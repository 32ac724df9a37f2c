"""A time range or offsets of a lake or a topic back on a topic, each record as it was.

Key, value, headers, timestamp and partition are the original ones, and so is the order within a
partition: a partition is written by one task, by offset. Replaying twice writes twice.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from headrace.pipelines.decoders.raw import Raw
from headrace.pipelines.definition import Option, Pipeline, Sink, Source, Transform
from headrace.pipelines.errors import PipelineDefinitionError
from headrace.pipelines.loops import refuse_loops
from headrace.pipelines.sinks.lake.source import LakeSource
from headrace.pipelines.sinks.topic import TopicSink
from headrace.pipelines.source import TopicSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

OPTIONS = (
    Option("from", "the lake to read; without it, the log of --topic is read"),
    Option("partitions", "keep: as they were; by-key: as the key says", "keep"),
    Option("same_topic", "yes: a topic may be written that is read, or rows name theirs", "no"),
    Option("create", "partitions of a topic that is missing: auto, a number, or off", "auto"),
)
# Tasks for each core: partitions differ in size, and a task has several.
_TASKS_PER_CORE = 2


def pipeline(options: Mapping[str, str], source: TopicSource, sinks: tuple[Sink, ...]) -> Pipeline:
    """Replay what the options and `source` name."""
    if options["partitions"] not in ("keep", "by-key"):
        raise PipelineDefinitionError(f"partitions={options['partitions']}: write keep or by-key")
    if options["same_topic"] not in ("yes", "no"):
        raise PipelineDefinitionError(f"same_topic={options['same_topic']}: write yes or no")
    if not sinks:
        raise PipelineDefinitionError("replay needs a topic to write to: --to topic:NAME")
    sinks = _allowed(
        source, sinks, is_same_topic=options["same_topic"] == "yes", is_lake="from" in options
    )
    read: Source = replace(source, end=source.end or "latest")
    if "from" in options:
        if source.pattern is not None:
            raise PipelineDefinitionError(
                "a lake is not read by a pattern; name the topics with --topic, or none for all"
            )
        read = LakeSource(
            path=options["from"], topics=source.topics, start=source.start, end=source.end
        )
    return Pipeline(
        name="replay",
        summary=(__doc__ or "").partition("\n")[0],
        source=read,
        decoder=Raw(),
        sinks=sinks,
        transform=as_it_was(
            is_keeping_partitions=options["partitions"] == "keep", is_sorting="from" in options
        ),
        options=dict(options),
    )


def as_it_was(*, is_keeping_partitions: bool, is_sorting: bool) -> Transform:
    """The transform: rows for a topic, in the order of the log within each partition.

    A topic's log is read in its order, a partition a task; a lake's files have to be sorted.
    """

    def transform(records: "DataFrame") -> "DataFrame":
        if is_sorting:
            cores = records.sparkSession.sparkContext.defaultParallelism
            records = records.repartition(
                _TASKS_PER_CORE * cores, "topic", "partition"
            ).sortWithinPartitions("topic", "partition", "offset")
        return records if is_keeping_partitions else records.drop("partition")

    return transform


def _allowed(
    source: TopicSource, sinks: tuple[Sink, ...], *, is_same_topic: bool, is_lake: bool
) -> tuple[Sink, ...]:
    """The sinks, which may write what is read if that was said, and are refused if it was not."""
    topics = [sink for sink in sinks if isinstance(sink, TopicSink)]
    if is_same_topic:
        return tuple(
            replace(sink, may_loop=True) if isinstance(sink, TopicSink) else sink for sink in sinks
        )
    if any(sink.topic is None for sink in topics):
        raise PipelineDefinitionError(
            "topic: without a name writes to the topics the records came from; "
            "say that you mean it with --option same_topic=yes, or write --to topic:NAME"
        )
    if not is_lake:
        refuse_loops(source, sinks, unless="say that you mean it with --option same_topic=yes")
    return sinks
