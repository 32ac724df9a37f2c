import re
from dataclasses import dataclass
from pathlib import Path

from headrace.metrics import Histogram, Metrics, MetricSample, partition_samples, process_samples


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
    metrics.register(lambda: [MetricSample("headrace_topics", "Topics.", next(values))])

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
    metrics.register(lambda: [MetricSample("headrace_x", "X.", 1, {"name": 'a"b\\c\nd'})])

    assert r'headrace_x{name="a\"b\\c\nd"} 1' in metrics.render()


def test_every_line_has_the_shape_prometheus_reads() -> None:
    metrics = Metrics({0: "Produce"})
    metrics.requests[0] += 1
    metrics.count_error(0, 10)
    metrics.register(lambda: partition_samples([ALog("a", 0), ALog("a", 1)]))
    name = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
    labels = r'\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\}'
    shape = re.compile(
        rf"# HELP {name} \S.*|# TYPE {name} (counter|gauge|histogram)"
        rf"|{name}({labels})? (\d+(\.\d+)?(e-?\d+)?)"
    )

    text = metrics.render()

    assert text.endswith("\n")
    assert [line for line in text.splitlines() if not shape.fullmatch(line)] == []


def test_no_family_is_announced_twice_nor_sampled_before_it_is_announced() -> None:
    metrics = Metrics({0: "Produce"})
    metrics.requests[0] += 1
    metrics.register(lambda: partition_samples([ALog("a", 0), ALog("b", 0)]))

    announced: list[str] = []
    for line in metrics.render().splitlines():
        if line.startswith("# TYPE"):
            announced.append(line.split()[2])
        elif not line.startswith("#"):
            assert re.split(r"[{ ]", line)[0].startswith(announced[-1])

    assert len(announced) == len(set(announced))


def test_this_process_shows_its_age_its_memory_and_its_files() -> None:
    samples = {sample.name: sample.value for sample in process_samples()}

    assert samples["headrace_uptime_seconds"] > 0
    assert samples["process_resident_memory_bytes"] > 1_000_000
    assert samples["process_open_fds"] >= 3


def test_a_file_that_is_opened_is_seen_at_the_next_scrape(tmp_path: Path) -> None:
    def open_files() -> float:
        return {sample.name: sample.value for sample in process_samples()}["process_open_fds"]

    before = open_files()
    with (tmp_path / "one").open("w"):
        assert open_files() == before + 1
