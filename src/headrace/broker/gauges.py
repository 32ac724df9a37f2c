"""What is read from topics, loaded logs and groups when somebody scrapes /metrics."""

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from headrace.broker.topics import Topics
from headrace.log.directory import LogDirectory
from headrace.metrics import Metrics, MetricSample, partition_samples

if TYPE_CHECKING:
    from headrace.coordinators.groups.registry import GroupRegistry


def register_gauges(metrics: Metrics, topics: Topics, logs: LogDirectory) -> None:
    """Add the gauges of one broker. A scrape opens no log that nobody has used yet."""

    def samples() -> Iterable[MetricSample]:
        known = topics.all()
        partition_count = sum(topic.partition_count for topic in known)
        yield MetricSample("headrace_topics", "Topics.", len(known))
        yield MetricSample("headrace_partitions", "Partitions of all topics.", partition_count)
        loaded = list(logs.loaded())
        yield MetricSample("headrace_logs_open", "Logs opened since the start.", len(loaded))
        yield from partition_samples(loaded)

    metrics.register(samples)


def group_samples(registry: "GroupRegistry") -> Iterable[MetricSample]:
    """The gauges of one broker's groups: those that are in memory."""
    groups = registry.groups()
    listed = [group.listed() for group in groups]
    counts = Counter((one.group_type, one.state) for one in listed)
    for (group_type, state), count in sorted(counts.items()):
        labels = {"type": group_type, "state": state}
        yield MetricSample("headrace_groups", "Groups, by type and state.", count, labels)
    member_count = sum(group.member_count for group in groups)
    yield MetricSample("headrace_group_members", "Members of all groups.", member_count)
