"""What is read from the groups when somebody scrapes /metrics."""

from collections import Counter
from collections.abc import Iterable

from headrace.broker.groups.runtime import GroupRuntime
from headrace.coordinators.groups.classic.group import ClassicGroup
from headrace.coordinators.groups.registry import Group
from headrace.metrics import Metrics, Sample


def register_group_gauges(metrics: Metrics, groups: GroupRuntime) -> None:
    """Add the gauges of one broker's groups: those that are in memory."""

    def samples() -> Iterable[Sample]:
        listed = [group.listed() for group in groups.coordinator.registry.groups()]
        counts = Counter((one.group_type, one.state) for one in listed)
        for (group_type, state), count in sorted(counts.items()):
            labels = {"type": group_type, "state": state}
            yield Sample("headrace_groups", "Groups, by type and state.", count, labels)
        member_count = sum(_member_count(group) for group in groups.coordinator.registry.groups())
        yield Sample("headrace_group_members", "Members of all groups.", member_count)

    metrics.register(samples)


def _member_count(group: Group) -> int:
    if isinstance(group, ClassicGroup):
        return len(group.members)
    return len(group.describe().members)
