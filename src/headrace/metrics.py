"""What the broker counts, and how it reads as Prometheus text.

Invariant: counting costs one attribute and one addition, never a lock or a
look-up by name; whatever is dear is computed by a registered source at scrape time.
"""

import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple, Protocol

_MAX_API_KEYS = 128  # Kafka 4.3.1 ends at 93; a longer list costs nothing
_CONTENT_VERSION = "0.0.4"  # of Prometheus' text format
CONTENT_TYPE = f"text/plain; version={_CONTENT_VERSION}; charset=utf-8"
_SYNC_BOUNDS_SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)
_LOOP_LAG_BOUNDS_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
_PROCESS_START_SECONDS = time.time()


class Counter:
    """A number that only grows: `counter.value += 1`."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0


class Gauge:
    """A number that goes up and down: `gauge.value -= 1`."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: float = 0


class Histogram:
    """How often a value fell into each of a few fixed buckets."""

    __slots__ = ("bounds", "bucket_counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.bucket_counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        """Count `value`; a bucket holds what is not above its bound."""
        self.bucket_counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    @property
    def count(self) -> int:
        """How many values were observed."""
        return sum(self.bucket_counts)


class MetricSample(NamedTuple):
    """One number computed at scrape time. Samples of one name must come one after another."""

    name: str
    help: str
    value: float
    labels: Mapping[str, str] = {}
    kind: str = "gauge"


SampleSource = Callable[[], Iterable[MetricSample]]


class MeasuredLog(Protocol):
    """What a partition's log must show to be measured."""

    topic: str
    partition: int

    @property
    def log_start_offset(self) -> int: ...
    @property
    def log_end_offset(self) -> int: ...
    @property
    def size_bytes(self) -> int: ...


class Metrics:
    """All counters of one broker. Written by the event-loop thread only; reading is free."""

    def __init__(self, api_names: Mapping[int, str] | None = None) -> None:
        self.api_names: Mapping[int, str] = api_names or {}
        self.requests = [0] * _MAX_API_KEYS  # by api key
        self.request_errors: dict[tuple[int, int], int] = {}  # by api key and error code
        self.bytes_in = Counter()
        self.bytes_out = Counter()
        self.messages_in = Counter()
        self.batches_in = Counter()
        self.batch_bytes_in = Counter()
        self.fetched_bytes = Counter()
        self.connections_open = Gauge()
        self.connections_total = Counter()
        self.connections_refused = Counter()
        self.wire_errors = Counter()
        self.fetch_waiters = Gauge()
        self.buffer_bytes = Gauge()
        self.commits = Counter()
        self.commit_batches = Counter()
        self.append_failures = Counter()
        self.corrupt_reads = Counter()
        self.segments_deleted = Counter()
        self.group_heartbeats = Counter()
        self.group_rebalances = Counter()
        self.offset_commits = Counter()
        self.sync_seconds = Histogram(_SYNC_BOUNDS_SECONDS)
        self.loop_lag_seconds = Histogram(_LOOP_LAG_BOUNDS_SECONDS)
        self.loop_lag_worst_seconds = Gauge()
        self._sources: list[SampleSource] = [process_samples]

    def count_error(self, api_key: int, error_code: int) -> None:
        """Count one answer that carried an error code."""
        key = (api_key, error_code)
        self.request_errors[key] = self.request_errors.get(key, 0) + 1

    def register(self, source: SampleSource) -> None:
        """Ask `source` for its gauges at every scrape."""
        self._sources.append(source)

    def render(self) -> str:
        """Everything, in Prometheus' text format."""
        return "\n".join(self.lines())

    def lines(self) -> Iterator[str]:
        """The lines of `render`: thousands of logs have tens of thousands, made one by one."""
        lines: list[str] = []
        self._render_requests(lines)
        for attribute, (name, help_text) in _COUNTERS.items():
            _head(lines, name, "counter", help_text)
            lines.append(f"{name} {getattr(self, attribute).value}")
        for attribute, (name, help_text) in _GAUGES.items():
            _head(lines, name, "gauge", help_text)
            lines.append(f"{name} {_number(getattr(self, attribute).value)}")
        _render_histogram(
            lines,
            "headrace_sync_seconds",
            "Time one fdatasync took, for acks=all.",
            self.sync_seconds,
        )
        _render_histogram(
            lines,
            "headrace_loop_lag_seconds",
            "How late the event loop ran its timers: nobody was served meanwhile.",
            self.loop_lag_seconds,
        )
        yield from lines
        for source in self._sources:
            yield from _sample_lines(source())
        yield ""

    def _render_requests(self, lines: list[str]) -> None:
        _head(lines, "headrace_requests_total", "counter", "Requests answered, by API.")
        for api_key, count in enumerate(self.requests):
            if count:
                labels = {"api": self._api_name(api_key)}
                lines.append(f"headrace_requests_total{_labels(labels)} {count}")
        name = "headrace_request_errors_total"
        _head(lines, name, "counter", "Error codes answered, by API and Kafka's number.")
        for (api_key, code), count in sorted(self.request_errors.items()):
            labels = {"api": self._api_name(api_key), "code": str(code)}
            lines.append(f"{name}{_labels(labels)} {count}")

    def _api_name(self, api_key: int) -> str:
        return self.api_names.get(api_key, str(api_key))


_COUNTERS = {
    "bytes_in": ("headrace_received_bytes_total", "Bytes read from clients."),
    "bytes_out": ("headrace_sent_bytes_total", "Bytes written to clients."),
    "messages_in": ("headrace_messages_in_total", "Messages appended by producers."),
    "batches_in": ("headrace_batches_in_total", "Batches appended by producers."),
    "batch_bytes_in": ("headrace_batch_bytes_in_total", "Bytes of batches appended by producers."),
    "fetched_bytes": ("headrace_fetched_bytes_total", "Bytes of batches sent to consumers."),
    "connections_total": ("headrace_connections_total", "Connections accepted."),
    "connections_refused": ("headrace_connections_refused_total", "Connections over a limit."),
    "wire_errors": ("headrace_wire_errors_total", "Connections closed for malformed bytes."),
    "commits": ("headrace_commits_total", "Group commits: one write for all staged batches."),
    "commit_batches": ("headrace_commit_batches_total", "Batches written by group commits."),
    "append_failures": ("headrace_append_failures_total", "Writes the disk refused."),
    "corrupt_reads": ("headrace_corrupt_reads_total", "Fetches that met a damaged batch."),
    "segments_deleted": ("headrace_segments_deleted_total", "Segments removed by retention."),
    "group_heartbeats": ("headrace_group_heartbeats_total", "Heartbeats of group members."),
    "group_rebalances": ("headrace_group_rebalances_total", "New generations and targets."),
    "offset_commits": ("headrace_offset_commits_total", "Offsets committed, one a partition."),
}
_GAUGES = {
    "connections_open": ("headrace_connections_open", "Connections open now."),
    "fetch_waiters": ("headrace_fetch_waiters", "Fetches waiting for data or for their deadline."),
    "buffer_bytes": ("headrace_buffer_bytes", "Bytes held in connection buffers."),
    "loop_lag_worst_seconds": (
        "headrace_loop_lag_worst_seconds",
        "The latest the event loop ran in the last minute.",
    ),
}


def render_samples(samples: Iterable[MetricSample]) -> str:
    """These alone, in Prometheus' text format: for whoever counts in other ways than a broker."""
    return "\n".join([*_sample_lines(samples), ""])


def process_samples() -> Iterable[MetricSample]:
    """Age, memory and files of this process."""
    import psutil  # at the first scrape: a broker's start does not wait for it

    uptime_seconds = time.time() - _PROCESS_START_SECONDS
    yield MetricSample(
        "headrace_uptime_seconds", "Seconds since this process loaded headrace.", uptime_seconds
    )
    process = psutil.Process()
    rss_bytes = process.memory_info().rss
    yield MetricSample("process_resident_memory_bytes", "Resident memory size in bytes.", rss_bytes)
    if psutil.POSIX:
        yield MetricSample(
            "process_open_fds", "Number of open file descriptors.", process.num_fds()
        )


def partition_samples(logs: Iterable[MeasuredLog]) -> Iterable[MetricSample]:
    """Offsets and size of each log given: pass those that are loaded, so a scrape opens none."""
    measured = sorted(logs, key=lambda log: (log.topic, log.partition))
    labels = [{"topic": log.topic, "partition": str(log.partition)} for log in measured]
    for log, its_labels in zip(measured, labels, strict=True):
        help_text = "First offset a reader may ask for."
        yield MetricSample("headrace_log_start_offset", help_text, log.log_start_offset, its_labels)
    for log, its_labels in zip(measured, labels, strict=True):
        help_text = "Offset of the next message."
        yield MetricSample("headrace_log_end_offset", help_text, log.log_end_offset, its_labels)
    for log, its_labels in zip(measured, labels, strict=True):
        yield MetricSample(
            "headrace_log_size_bytes", "Bytes in .log files.", log.size_bytes, its_labels
        )


def _head(lines: list[str], name: str, kind: str, help_text: str) -> None:
    lines.append(f"# HELP {name} {help_text}")
    lines.append(f"# TYPE {name} {kind}")


def _sample_lines(samples: Iterable[MetricSample]) -> Iterator[str]:
    last_name = ""
    for sample in samples:
        if sample.name != last_name:
            head: list[str] = []
            _head(head, sample.name, sample.kind, sample.help)
            yield from head
            last_name = sample.name
        yield f"{sample.name}{_labels(sample.labels)} {_number(sample.value)}"


def _render_histogram(lines: list[str], name: str, help_text: str, histogram: Histogram) -> None:
    _head(lines, name, "histogram", help_text)
    running = 0
    for bound, count in zip((*histogram.bounds, "+Inf"), histogram.bucket_counts, strict=True):
        running += count
        lines.append(f'{name}_bucket{{le="{bound}"}} {running}')
    lines.append(f"{name}_sum {_number(histogram.total)}")
    lines.append(f"{name}_count {running}")


def _labels(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escape(value)}"' for name, value in labels.items()) + "}"


def _escape(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _number(value: float) -> str:
    # repr keeps every digit; integers read better without ".0".
    return str(int(value)) if value == int(value) else repr(float(value))
