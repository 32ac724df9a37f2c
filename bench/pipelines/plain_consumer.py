"""What one would write without Spark: a Python consumer that fills a lake or a table.

Runs as a process of its own and prints its own time and CPU as JSON, measured from the first
poll: the interpreter's start counts for it no more than the JVM's does for Spark. It writes the
same rows and columns as the pipelines, in plain manner: 10,000 messages, one write, one commit.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from bench.errors import BenchError
from bench.pipelines.plain_tables import TABLES
from headrace.client.bus import Bus
from headrace.client.librdkafka import bus_errors, error_of, make_consumer
from headrace.errors import HeadraceError
from headrace.pipelines.sinks.lake.write_options import DEFAULT_COMPRESSION

_POLL_MESSAGES = 10_000
_POLL_SECONDS = 5.0
_STALL_SECONDS = 60.0
_LAKE_FILE_ROWS = 500_000  # as many as a batch of the pipeline, so the files are as large


class Writer(Protocol):
    """Takes messages until it is closed."""

    def write(self, messages: Sequence[Any]) -> None: ...

    def close(self) -> None: ...


class LakeWriter:
    """Parquet files by date and hour with the columns `archive` keeps."""

    def __init__(self, directory: str) -> None:
        self._directory = Path(directory)
        self._writers: dict[str, Any] = {}
        self._rows = 0
        self._file_number = 0

    def write(self, messages: Sequence[Any]) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        for place, chosen in _by_hour(messages).items():
            batch = pa.table(
                {
                    "key": pa.array([m.key() for m in chosen], pa.binary()),
                    "value": pa.array([m.value() for m in chosen], pa.binary()),
                    "topic": pa.array([m.topic() for m in chosen], pa.string()),
                    "partition": pa.array([m.partition() for m in chosen], pa.int32()),
                    "offset": pa.array([m.offset() for m in chosen], pa.int64()),
                    "timestamp": pa.array(
                        [m.timestamp()[1] for m in chosen], pa.timestamp("ms", "UTC")
                    ),
                    "headers": pa.array(
                        [m.headers() or [] for m in chosen], pa.map_(pa.string(), pa.binary())
                    ),
                    "timestamp_type": pa.array([m.timestamp()[0] - 1 for m in chosen], pa.int32()),
                }
            )
            if place not in self._writers:
                path = self._directory / place / f"part-{self._file_number:05}.parquet"
                path.parent.mkdir(parents=True, exist_ok=True)
                self._writers[place] = parquet.ParquetWriter(
                    path, batch.schema, compression=DEFAULT_COMPRESSION
                )
            self._writers[place].write_table(batch)
        self._rows += len(messages)
        if self._rows >= _LAKE_FILE_ROWS:
            self.close()

    def close(self) -> None:
        for writer in self._writers.values():
            writer.close()
        self._writers.clear()
        self._rows = 0
        self._file_number += 1


def _by_hour(messages: Sequence[Any]) -> dict[str, list[Any]]:
    places: dict[int, list[Any]] = {}
    for message in messages:
        places.setdefault(message.timestamp()[1] // 3_600_000, []).append(message)
    return {
        f"date={at:%Y-%m-%d}/hour={at:%H}": chosen
        for hour, chosen in places.items()
        for at in [datetime.fromtimestamp(hour * 3600, UTC)]
    }


def consume(bootstrap: str, topic: str, rows: int, writer: Writer) -> dict[str, float]:
    """Take `rows` messages from the beginning to the writer; return the time and the CPU."""
    consumer = make_consumer(
        Bus(bootstrap),
        {
            "group.id": f"plain-consumer-{time.time_ns()}",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        },
    )
    consumer.subscribe([topic])
    try:
        # Joining the group takes seconds and is not what is measured.
        first = consumer.consume(1, _STALL_SECONDS)
        started_at, cpu_before = time.perf_counter(), time.process_time()
        done = _take(first, writer)
        heard_at = time.monotonic()
        while done < rows:
            # Not more than there are: consume() waits its whole time for the missing ones.
            messages = consumer.consume(min(_POLL_MESSAGES, rows - done), _POLL_SECONDS)
            if not messages and time.monotonic() - heard_at > _STALL_SECONDS:
                raise BenchError(f"only {done:,} of {rows:,} messages came")
            if messages:
                heard_at = time.monotonic()
                done += _take(messages, writer)
                consumer.commit(asynchronous=True)
        writer.close()
        return {
            "rows": done,
            "seconds": time.perf_counter() - started_at,
            "cpu_seconds": time.process_time() - cpu_before,
        }
    finally:
        consumer.close()


def _take(messages: Sequence[Any], writer: Writer) -> int:
    for message in messages:
        if message.error() is not None:
            raise error_of(message.error())
    if messages:
        writer.write(messages)
    return len(messages)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bootstrap")
    parser.add_argument("topic")
    parser.add_argument("rows", type=int)
    parser.add_argument("kind", choices=["lake", *TABLES])
    parser.add_argument("place", help="a directory, a file or a connection URL")
    options = parser.parse_args(arguments)
    make: Callable[[str], Writer] = TABLES.get(options.kind, LakeWriter)
    writer = make(options.place)
    try:
        with bus_errors():
            figures = consume(options.bootstrap, options.topic, options.rows, writer)
        print(json.dumps(figures))
    except HeadraceError as error:
        print(f"plain consumer: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
