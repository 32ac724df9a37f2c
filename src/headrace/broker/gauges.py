"""What is read from the topics and their loaded logs when somebody scrapes /metrics."""

from collections.abc import Iterable

from headrace.broker.topics import Topics
from headrace.log.directory import LogDirectory
from headrace.metrics import Metrics, Sample, partition_samples


def register_gauges(metrics: Metrics, topics: Topics, logs: LogDirectory) -> None:
    """Add the gauges of one broker. A scrape opens no log that nobody has used yet."""

    def samples() -> Iterable[Sample]:
        known = topics.all()
        partition_count = sum(topic.partition_count for topic in known)
        yield Sample("headrace_topics", "Topics.", len(known))
        yield Sample("headrace_partitions", "Partitions of all topics.", partition_count)
        loaded = list(logs.loaded())
        yield Sample("headrace_logs_open", "Logs opened since the start.", len(loaded))
        yield from partition_samples(loaded)

    metrics.register(samples)
