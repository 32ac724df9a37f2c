from types import SimpleNamespace
from typing import Any

from headrace.broker.gauges import register_gauges
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
