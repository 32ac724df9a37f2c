from dataclasses import dataclass

import pytest

from headrace.metrics import Histogram, Metrics, Sample, partition_samples, resident_bytes


@dataclass
class ALog:
    topic: str
    partition: int
    log_start_offset: int = 0
    log_end_offset: int = 0
    size_bytes: int = 0


def test_counters_are_rendered_with_their_value() -> None:
    metrics = Metrics()
    metrics.bytes_in.value += 7

    assert "headrace_received_bytes_total 7" in metrics.render().splitlines()


def test_requests_are_named_by_api() -> None:
    metrics = Metrics({0: "Produce"})
    metrics.requests[0] += 3
    metrics.requests[90] += 1

    lines = metrics.render().splitlines()

    assert 'headrace_requests_total{api="Produce"} 3' in lines
    assert 'headrace_requests_total{api="90"} 1' in lines


def test_errors_are_counted_by_api_and_code() -> None:
    metrics = Metrics({1: "Fetch"})
    metrics.count_error(1, 3)
    metrics.count_error(1, 3)

    assert 'headrace_request_errors_total{api="Fetch",code="3"} 2' in metrics.render()


def test_a_value_on_a_bound_belongs_to_that_bucket() -> None:
    histogram = Histogram((1.0, 2.0))
    for value in (1.0, 1.5, 9.0):
        histogram.observe(value)

    assert histogram.bucket_counts == [1, 1, 1]
    assert (histogram.count, histogram.total) == (3, 11.5)


def test_buckets_are_cumulative_and_end_at_infinity() -> None:
    metrics = Metrics()
    for seconds in (0.0001, 0.0006, 99.0):
        metrics.sync_seconds.observe(seconds)

    lines = [line for line in metrics.render().splitlines() if "sync_seconds" in line]

    assert 'headrace_sync_seconds_bucket{le="0.0005"} 1' in lines
    assert 'headrace_sync_seconds_bucket{le="5.0"} 2' in lines
    assert 'headrace_sync_seconds_bucket{le="+Inf"} 3' in lines
    assert "headrace_sync_seconds_count 3" in lines


def test_a_registered_source_is_asked_at_every_scrape() -> None:
    metrics = Metrics()
    values = iter((1, 2))
    metrics.register(lambda: [Sample("headrace_topics", "Topics.", next(values))])

    assert "headrace_topics 1\n" in metrics.render()
    assert "headrace_topics 2\n" in metrics.render()


def test_each_partition_shows_its_offsets_and_size() -> None:
    metrics = Metrics()
    logs = [ALog("b", 0, 1, 2, 3), ALog("a", 1, 4, 5, 6)]
    metrics.register(lambda: partition_samples(logs))

    text = metrics.render()

    assert 'headrace_log_end_offset{topic="a",partition="1"} 5' in text
    assert 'headrace_log_start_offset{topic="b",partition="0"} 1' in text
    assert 'headrace_log_size_bytes{topic="b",partition="0"} 3' in text
    assert text.count("# TYPE headrace_log_end_offset gauge") == 1


def test_a_label_with_quotes_and_line_breaks_is_escaped() -> None:
    metrics = Metrics()
    metrics.register(lambda: [Sample("headrace_x", "X.", 1, {"name": 'a"b\\c\nd'})])

    assert r'headrace_x{name="a\"b\\c\nd"} 1' in metrics.render()


def test_the_text_is_what_prometheus_parses() -> None:
    parser = pytest.importorskip("prometheus_client.parser")
    metrics = Metrics({0: "Produce"})
    metrics.requests[0] += 1
    metrics.register(lambda: partition_samples([ALog("a", 0)]))

    families = {family.name for family in parser.text_string_to_metric_families(metrics.render())}

    assert {"headrace_requests", "headrace_sync_seconds", "headrace_log_end_offset"} <= families


def test_this_process_has_memory_and_a_missing_one_has_none() -> None:
    assert resident_bytes() > 1_000_000
    assert resident_bytes(2**22 + 1) == 0
