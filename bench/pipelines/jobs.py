"""The jobs that are measured: the pipelines in one warm session, and what they are held against."""

import itertools
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from bench.driver import MeasuredBroker
from bench.errors import BenchError
from bench.pipelines.databases import Database
from bench.pipelines.metering import Meter, Pass
from bench.pipelines.plain_tables import TABLE as PLAIN_TABLE
from bench.pipelines.rows import KEY, SCHEMA, Expected
from bench.pipelines.session import run_available_now

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PLAIN_TIMEOUT_S = 1800
_TABLE = "readings"


@dataclass(frozen=True, slots=True, kw_only=True)
class Jobs:
    """Runs one pass of one job, checks what it left, removes it, and returns the cost."""

    spark: "SparkSession"
    brokers: Mapping[str, MeasuredBroker]
    databases: Mapping[str, Database]
    scratch: Path
    is_stop_asked: Callable[[], bool] = lambda: False
    _numbers: "itertools.count[int]" = field(default_factory=itertools.count)

    def archive(self, broker: str, topic: str, expected: Expected) -> Pass:
        """The `archive` pipeline to Parquet by date and hour."""
        place = self._place("archive")
        try:
            measured = self.archive_to(place / "lake", broker, topic, expected)
        finally:
            shutil.rmtree(place)
        return measured

    def archive_to(self, lake: Path, broker: str, topic: str, expected: Expected) -> Pass:
        """The same, and the lake stays."""
        measured = self._meter.measure(
            expected.rows,
            lambda: run_available_now(
                self.spark,
                "archive",
                bootstrap=self._bootstrap(broker),
                topic=topic,
                to=f"parquet:{lake}",
                state_dir=lake.with_name("state"),
                is_stop_asked=self.is_stop_asked,
            ),
            broker=broker,
        )
        expected.check_lake(f"archive fed by {broker}", rows_in_lake(lake))
        return measured

    def copy(self, lake: Path, expected: Expected) -> Pass:
        """Spark's own ceiling: the lake `archive` wrote, copied with the same partitioning."""
        from headrace.pipelines.sinks.lake.write_options import DEFAULT_COMPRESSION, apply_settings

        apply_settings(self.spark)  # what the lake's own writer sets
        place = self._place("copy")
        target = place / "lake"

        def copy() -> None:
            rows = self.spark.read.parquet(str(lake))
            writer = rows.write.option("compression", DEFAULT_COMPRESSION).partitionBy(
                "date", "hour"
            )
            writer.parquet(str(target))

        try:
            measured = self._meter.measure(expected.rows, copy)
            expected.check_lake("Parquet copy", rows_in_lake(target))
        finally:
            shutil.rmtree(place)
        return measured

    def table(self, database: str, broker: str, topic: str, expected: Expected) -> Pass:
        """The `table` pipeline: the last row of each key."""
        place, target = self._place("table"), self.databases[database]
        options = {"schema": SCHEMA, "table": _TABLE, "key": KEY}
        try:
            measured = self._meter.measure(
                expected.rows,
                lambda: run_available_now(
                    self.spark,
                    "table",
                    bootstrap=self._bootstrap(broker),
                    topic=topic,
                    to=target.sink_uri,
                    state_dir=place / "state",
                    is_stop_asked=self.is_stop_asked,
                    options=options,
                ),
                broker=broker,
                database=database,
            )
            what = f"table in {target.title} fed by {broker}"
            expected.check_table(what, *target.keys_and_sum(_TABLE))
        finally:
            target.empty()
            shutil.rmtree(place)
        return measured

    def plain_lake(self, broker: str, topic: str, expected: Expected) -> Pass:
        """The plain consumer to Parquet."""
        place = self._place("plain")
        try:
            measured = self._plain(broker, topic, expected, "lake", str(place))
            expected.check_lake("plain consumer", rows_in_lake(place))
        finally:
            shutil.rmtree(place)
        return measured

    def plain_table(self, database: str, broker: str, topic: str, expected: Expected) -> Pass:
        """The plain consumer to a table."""
        target = self.databases[database]
        try:
            measured = self._plain(broker, topic, expected, database, target.url)
            what = f"plain consumer to {target.title}"
            expected.check_table(what, *target.keys_and_sum(PLAIN_TABLE))
        finally:
            target.empty()
        return measured

    def _plain(self, broker: str, topic: str, expected: Expected, kind: str, place: str) -> Pass:
        """Its own clock counts: see `plain_consumer`; the servers' CPU is read around it."""
        before = self._meter.cpu_seconds()
        module = "bench.pipelines.plain_consumer"
        arguments = [self._bootstrap(broker), topic, str(expected.rows), kind, place]
        answer = subprocess.run(
            [sys.executable, "-m", module, *arguments],
            capture_output=True,
            text=True,
            timeout=_PLAIN_TIMEOUT_S,
        )
        if answer.returncode:
            raise BenchError(answer.stderr.strip() or "the plain consumer failed")
        after = self._meter.cpu_seconds()
        own = json.loads(answer.stdout)
        return Pass(
            own["rows"],
            own["seconds"],
            own["cpu_seconds"],
            after[broker] - before[broker],
            after[kind] - before[kind] if kind in after else 0.0,
        )

    @property
    def _meter(self) -> Meter:
        servers = {name: broker.pid for name, broker in self.brokers.items()}
        for name, database in self.databases.items():
            if database.pid is not None:
                servers[name] = database.pid
        return Meter(servers)

    def _bootstrap(self, broker: str) -> str:
        return f"127.0.0.1:{self.brokers[broker].port}"

    def _place(self, name: str) -> Path:
        place = self.scratch / f"{name}-{next(self._numbers)}"
        place.mkdir()
        return place


def rows_in_lake(lake: Path) -> int:
    """Count by the footers of the files: nobody's reader takes part."""
    from pyarrow import parquet

    files = lake.glob("date=*/hour=*/*.parquet")
    return sum(int(parquet.read_metadata(path).num_rows) for path in files)
