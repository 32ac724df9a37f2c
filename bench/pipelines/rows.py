"""The rows that are measured: JSON records by key, and what must come of them.

Every topic of a run holds the same rows, whatever its partitions: all rows of a key lie in one
of BUCKETS groups, and a group goes to one partition. So the last row of a key is the same
everywhere, and a table can be checked without reading the topic.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bench.clients import replay
from bench.errors import BenchError
from bench.requests import produce_frame, write_requests
from bench.topics import admin_of, create_topic
from headrace.records.builder import build_batch
from headrace.records.codecs import Codec
from headrace.records.record import Record

SCHEMA = (
    "sensor string not null, at timestamp not null, celsius double not null, "
    "humidity double, battery double, number bigint not null"
)
KEY = "sensor"
COLUMNS = ("sensor", "at", "celsius", "humidity", "battery", "number")
KEYS = 100_000
BUCKETS = 16  # the most partitions that are measured
BATCH_ROWS = 2_000  # about what a producer with linger and lz4 packs into a request
# The rows lie in three hours, so that a lake by hour has more than one directory to write to.
_HOURS = 3


@dataclass(frozen=True, slots=True)
class Expected:
    """What a lake and a table hold when every row has arrived."""

    rows: int
    keys: int
    sum_of_last_numbers: int  # over the last row of each key

    def check_lake(self, what: str, rows: int) -> None:
        """Raise BenchError unless the lake has every row once."""
        if rows != self.rows:
            raise BenchError(f"{what}: {rows:,} rows in the lake, {self.rows:,} on the topic")

    def check_table(self, what: str, keys: int, sum_of_numbers: int) -> None:
        """Raise BenchError unless the table holds the last row of each key."""
        if (keys, sum_of_numbers) != (self.keys, self.sum_of_last_numbers):
            raise BenchError(
                f"{what}: the table has {keys:,} keys with a sum of {sum_of_numbers:,}; "
                f"it should have {self.keys:,} with {self.sum_of_last_numbers:,}"
            )


@dataclass(frozen=True, slots=True)
class Batch:
    """One encoded batch and the bucket all its rows belong to."""

    bucket: int
    encoded: bytes


class RowSet:
    """A set of distinct rows, encoded once; topics are filled with it as often as is asked."""

    def __init__(self, rows: int, *, keys: int = KEYS, batch_rows: int = BATCH_ROWS) -> None:
        if rows % (BUCKETS * batch_rows):
            raise BenchError(f"{rows} rows are no multiple of {BUCKETS} x {batch_rows}")
        self.rows, self.batch_rows = rows, batch_rows
        self._last: dict[int, int] = {}
        self.batches = list(self._encode(keys))

    def expected(self, rows: int) -> Expected:
        """What comes of a topic filled with `rows`, which repeat this set."""
        return Expected(rows, len(self._last), sum(self._last.values()))

    def fill(self, port: int, topic: str, *, partitions: int, rows: int, scratch: Path) -> None:
        """Make `topic` and append this set to it until it holds `rows`."""
        if rows % self.rows:
            raise BenchError(f"{rows} rows are no multiple of {self.rows}")
        create_topic(admin_of(port), topic, partitions)
        path = scratch / f"{topic}.produce"
        write_requests(
            path,
            (
                (
                    produce_frame(topic, batch.bucket % partitions, batch.encoded, 1),
                    self.batch_rows,
                    len(batch.encoded),
                    0,
                )
                for batch in self.batches
            ),
        )
        # One connection: the order of a key's rows must stay.
        replay(port, produce=path, in_flight=4, count=rows // self.batch_rows)
        path.unlink()

    def _encode(self, keys: int) -> Iterator[Batch]:
        draw = random.Random(self.rows)
        hour = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
        first_at = hour - timedelta(hours=_HOURS)
        step = timedelta(hours=_HOURS) / self.rows
        rounds = self.rows // (BUCKETS * self.batch_rows)
        number = 0
        for _ in range(rounds):
            for bucket in range(BUCKETS):
                records = []
                for offset in range(self.batch_rows):
                    key = draw.randrange(keys // BUCKETS) * BUCKETS + bucket
                    self._last[key] = number
                    records.append(_record(offset, key, number, first_at + number * step, draw))
                    number += 1
                yield Batch(bucket, bytes(build_batch(records, codec=Codec.LZ4)))


def _record(offset: int, key: int, number: int, at: datetime, draw: random.Random) -> Record:
    sensor = f"sensor-{key:06}"
    # As json.dumps would write it, at a third of the time.
    value = (
        f'{{"sensor":"{sensor}","at":"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03}Z",'
        f'"celsius":{draw.gauss(15, 8):.2f},"humidity":{draw.uniform(20, 95):.1f},'
        f'"battery":{draw.random():.2f},"number":{number}}}'
    )
    return Record(offset, int(at.timestamp() * 1000), sensor.encode(), value.encode(), [])
