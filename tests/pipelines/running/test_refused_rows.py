"""Rows that a sink refuses: their records are dead letters before the rest is written."""

import contextlib
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from tests.pipelines.running.stage import PATIENCE_S, Numbers, Stage, a_pipeline, values_in

from headrace.client.bus import Bus
from headrace.pipelines.dead_letters.reading import read_letters
from headrace.pipelines.definition import RECORD_SCHEMA, OpenSink, Run
from headrace.pipelines.errors import SinkError
from headrace.pipelines.refusal import RefusedRow, RowsRefusedError
from headrace.pipelines.running.batch import BatchWriter
from headrace.pipelines.sinks.sql.table import SqlTable
from headrace.pipelines.spans import Batch
from headrace.pipelines.topic_positions import TopicPositions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

pytestmark = pytest.mark.spark

TOPIC, LETTERS = "numbers", "numbers.letters"
AT = datetime(2026, 11, 18, tzinfo=UTC)


class Picky(OpenSink):
    """Refuses a number above ten; `look` is called at each attempt."""

    def __init__(self, look: Callable[[], object]) -> None:
        self._look = look
        self.seen: list[object] = []
        self.numbers: list[int] = []

    def write(self, rows: "DataFrame", batch: Batch) -> bool:
        found = rows.select("number", "_record.topic", "_record.partition", "_record.offset")
        collected = found.collect()
        self.seen.append(self._look())
        for number, topic, partition, offset in sorted(collected):
            if number > 10:
                refused = RefusedRow(topic, partition, offset, f"{number} is above ten")
                raise RowsRefusedError("the picky one", [refused])
        self.numbers = sorted(row.number for row in collected)
        return True


def test_each_sink_gets_what_it_takes_and_every_refused_record_is_a_letter(
    stage: Stage,
) -> None:
    spark, bus = stage.spark, stage.bus
    path = stage.directory / "n.db"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE n (number INTEGER PRIMARY KEY CHECK (number <> 3))")
    run = Run(spark=spark, bus=bus, name="r", app_id="app")
    table = SqlTable(f"sqlite:{path}", "n", ("number",), has_provenance=False).open(run)
    picky = Picky(lambda: sorted(values_in(bus, LETTERS)) if _has(bus, LETTERS) else [])
    writer = BatchWriter(
        a_pipeline(TOPIC), run, dead_letter_topic=LETTERS, is_stop_asked=lambda: False
    )
    writer.begin([table, picky])
    values = [b"1", b"20", b"bad", b"3"]
    rows = [(b"k", value, TOPIC, 0, place, AT, 0, None) for place, value in enumerate(values)]

    writer.write(spark.createDataFrame(rows, RECORD_SCHEMA), Batch(0))

    table.close()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT number FROM n").fetchall() == [(1,), (20,)]
    assert picky.numbers == [1, 3]
    # A letter lies in its topic before the sink is asked again.
    assert picky.seen == [[b"3"], [b"20", b"3"]]
    assert writer.dead_letters == 3
    assert writer.rows_of_batch == {0: 4}
    assert _reasons(bus) == {
        1: "20 is above ten",
        2: Numbers().explain(b"bad"),
        3: "SQLite refused the row: CHECK constraint failed: number <> 3",
    }


def _has(bus: Bus, topic: str) -> bool:
    from confluent_kafka.admin import AdminClient

    return topic in AdminClient(bus.client_config()).list_topics(timeout=PATIENCE_S).topics


def _reasons(bus: Bus) -> dict[int, str]:
    """Offset in the source and reason of each letter; their keys and values are as they were."""
    positions = TopicPositions(bus)
    partitions = positions.partitions([LETTERS])
    starts, ends = positions.oldest(partitions), positions.ends(partitions)
    bounds = {each[1]: (starts[each], ends[each]) for each in partitions}
    letters = list(read_letters(bus, LETTERS, bounds, PATIENCE_S))
    assert {(letter.source.topic, letter.source.partition, letter.key) for letter in letters} == {
        (TOPIC, 0, b"k")
    }
    return {letter.source.offset: letter.reason for letter in letters}


class Stubborn(OpenSink):
    """Refuses a row that no record of the batch can be blamed for."""

    def write(self, rows: "DataFrame", batch: Batch) -> bool:
        raise RowsRefusedError("the stubborn one", [RefusedRow("elsewhere", 0, 0, "never")])


def test_a_refusal_that_no_record_can_be_set_aside_for_ends_the_run(stage: Stage) -> None:
    run = Run(spark=stage.spark, bus=stage.bus, name="r", app_id="app")
    writer = BatchWriter(
        a_pipeline(TOPIC), run, dead_letter_topic=LETTERS, is_stop_asked=lambda: False
    )
    writer.begin([Stubborn()])
    rows = [(b"k", b"1", TOPIC, 0, 0, AT, 0, None)]

    with pytest.raises(SinkError, match="the stubborn one cannot take the row of elsewhere-0"):
        writer.write(stage.spark.createDataFrame(rows, RECORD_SCHEMA), Batch(0))
