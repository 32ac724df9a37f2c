from types import SimpleNamespace
from typing import Any

from tests.coordinators.groups.desk import Desk

from headrace.broker.gauges import group_samples, register_gauges
from headrace.coordinators.groups.messages import CommitTime, OffsetCommitter
from headrace.coordinators.groups.offsets import OffsetToCommit
from headrace.metrics import Metrics


def test_topics_partitions_and_loaded_logs_are_counted_at_every_scrape() -> None:
    logs: list[Any] = []
    topics: Any = SimpleNamespace(all=lambda: [SimpleNamespace(partition_count=3)])
    directory: Any = SimpleNamespace(loaded=lambda: logs)
    metrics = Metrics()
    register_gauges(metrics, topics, directory)

    logs.append(
        SimpleNamespace(topic="a", partition=2, log_start_offset=1, log_end_offset=9, size_bytes=70)
    )
    lines = metrics.render().splitlines()

    assert "headrace_topics 1" in lines
    assert "headrace_partitions 3" in lines
    assert "headrace_logs_open 1" in lines
    assert 'headrace_log_end_offset{topic="a",partition="2"} 9' in lines


def test_groups_are_shown_by_type_and_state_with_the_number_of_members() -> None:
    desk = Desk()
    desk.carry_out(
        desk.coordinator.commit_offsets(
            OffsetCommitter("simple"),
            [OffsetToCommit("t", 0, 5)],
            CommitTime(desk.now_ms, desk.now_ms),
            max_metadata_bytes=4096,
        )
    )
    desk.join("g")
    desk.beat("new", "m")
    metrics = Metrics()
    metrics.register(lambda: group_samples(desk.coordinator.registry))

    text = metrics.render()

    assert 'headrace_groups{type="classic",state="Empty"} 1' in text
    assert 'headrace_groups{type="classic",state="CompletingRebalance"} 1' in text
    assert 'headrace_groups{type="consumer",state="Stable"} 1' in text
    assert "headrace_group_members 2" in text
