"""A run's figures for Prometheus: its text format over HTTP, at /metrics.

Every figure carries the run's name as label `pipeline`. A scrape costs Spark nothing: it reads
what the runner knows.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from headrace.metrics import CONTENT_TYPE, MetricSample, process_samples, render_samples
from headrace.pipelines.errors import RunError
from headrace.pipelines.running.progress import RunProgress
from headrace.pipelines.running.reporting import Reporter
from headrace.pipelines.running.run_state import RUNNING
from headrace.pipelines.running.settings import RunSettings

# name, kind, help, value
_FIGURES: tuple[tuple[str, str, str, Callable[[RunProgress], float]], ...] = (
    ("rows_total", "counter", "Records read.", lambda progress: progress.rows),
    ("batches_total", "counter", "Batches that had records.", lambda progress: progress.batches),
    (
        "dead_letters_total",
        "counter",
        "Records set aside because they could not be decoded.",
        lambda progress: progress.dead_letters,
    ),
    (
        "drift_reports_total",
        "counter",
        "Differences from the schema that were reported.",
        lambda progress: progress.drift_reports,
    ),
    (
        "restarts_total",
        "counter",
        "Times the query was started again.",
        lambda progress: progress.restarts,
    ),
    (
        "rows_per_second",
        "gauge",
        "Records a second of the last batch.",
        lambda progress: progress.rows_per_s,
    ),
    ("batch_rows", "gauge", "Records in the last batch.", lambda progress: progress.batch_rows),
    (
        "batch_seconds",
        "gauge",
        "Time the last batch took, planning and commit included.",
        lambda progress: progress.batch_s,
    ),
    (
        "last_batch_timestamp_seconds",
        "gauge",
        "When the last batch was done; 0 before the first.",
        lambda progress: progress.last_batch_at or 0,
    ),
    ("state_rows", "gauge", "Rows in Spark's state.", lambda progress: progress.state_rows),
    (
        "state_bytes",
        "gauge",
        "Memory of Spark's state.",
        lambda progress: progress.state_bytes,
    ),
    (
        "bus_up",
        "gauge",
        "1 while the bus can be reached.",
        lambda progress: progress.bus_unreachable_since is None,
    ),
)


def run_samples(run_name: str, state: str, progress: RunProgress) -> Iterator[MetricSample]:
    """All figures of a run as samples."""
    label = {"pipeline": run_name}
    for name, kind, help_text, value in _FIGURES:
        yield MetricSample(f"headrace_pipeline_{name}", help_text, value(progress), label, kind)
    yield MetricSample("headrace_pipeline_up", "1 while the run runs.", state == RUNNING, label)
    for phase, seconds in sorted(progress.phases_s.items()):
        yield MetricSample(
            "headrace_pipeline_phase_seconds",
            "Time of each part of the last batch.",
            seconds,
            {**label, "phase": phase},
        )
    places = [
        ({**label, "topic": each.topic, "partition": str(each.partition)}, each)
        for each in progress.partitions
    ]
    for labels, each in places:
        yield MetricSample("headrace_pipeline_offset", "The next offset read.", each.offset, labels)
    for labels, each in places:
        if each.lag is not None:
            yield MetricSample(
                "headrace_pipeline_lag", "Records still to be read.", each.lag, labels
            )


@contextlib.contextmanager
def serve_metrics(settings: RunSettings, reporter: Reporter) -> Iterator[int]:
    """Answer scrapes while the context lasts; gives the port, for settings that say 0."""

    def text() -> str:
        samples = run_samples(settings.name, reporter.state, reporter.progress)
        return render_samples(samples) + render_samples(process_samples())

    host, port = settings.metrics_host, settings.metrics_port or 0
    try:
        server = ThreadingHTTPServer((host, port), _handler(text))
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise RunError(
            f"metrics port {port} cannot be opened: {reason}; choose another --metrics-port"
        ) from None
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, name="metrics", daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(text: Callable[[], str]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path.partition("?")[0] != "/metrics":
                self.send_error(404, "only /metrics is here")
                return
            body = text().encode()
            self.send_response(200)
            self.send_header("Content-Type", CONTENT_TYPE)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:
            """Scrapes are not worth a line."""

    return Handler
