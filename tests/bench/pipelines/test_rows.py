import json
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import Consumer

from bench.errors import BenchError
from bench.pipelines.jobs import rows_in_lake
from bench.pipelines.rows import BUCKETS, RowSet
from headrace.testing import running_broker

ROOT = Path(__file__).parents[3]
BATCH_ROWS = 10
SET_ROWS = BUCKETS * BATCH_ROWS * 2
needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="the load is a C program")


def a_row_set() -> RowSet:
    return RowSet(SET_ROWS, keys=64, batch_rows=BATCH_ROWS)


def last_of_each_key(bootstrap: str, topic: str, rows: int) -> dict[bytes, int]:
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": topic, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    try:
        messages = consumer.consume(rows, 30)
    finally:
        consumer.close()
    assert len(messages) == rows
    last = {}
    for message in messages:
        fields = json.loads(message.value())
        assert fields["sensor"].encode() == message.key()
        last[message.key()] = fields["number"]
    return last


@needs_compiler
@pytest.mark.parametrize("partitions", [1, 4, 16])
def test_a_topic_holds_the_same_last_rows_whatever_its_partitions(tmp_path, partitions):
    row_set = a_row_set()
    rows = SET_ROWS * 2
    with running_broker() as broker:
        row_set.fill(broker.port, "rows", partitions=partitions, rows=rows, scratch=tmp_path)
        last = last_of_each_key(broker.bootstrap, "rows", rows)

    expected = row_set.expected(rows)
    expected.check_table("the topic", len(last), sum(last.values()))
    assert expected.rows == rows
    assert list(tmp_path.iterdir()) == []


@needs_compiler
@pytest.mark.parametrize("kind", ["lake", "sqlite"])
def test_the_plain_consumer_leaves_every_row(tmp_path, kind):
    row_set = a_row_set()
    expected = row_set.expected(SET_ROWS)
    place = tmp_path / kind
    with running_broker() as broker:
        row_set.fill(broker.port, "rows", partitions=4, rows=SET_ROWS, scratch=tmp_path)
        answer = subprocess.run(
            [
                sys.executable,
                "-m",
                "bench.pipelines.plain_consumer",
                broker.bootstrap,
                "rows",
                str(SET_ROWS),
                kind,
                str(place),
            ],
            cwd=ROOT,
            capture_output=True,
            text=True,
        )

    assert answer.returncode == 0, answer.stderr
    assert json.loads(answer.stdout)["rows"] == SET_ROWS
    if kind == "lake":
        expected.check_lake(kind, rows_in_lake(place))
    else:
        with closing(sqlite3.connect(place)) as database:
            answer = database.execute("select count(*), sum(number) from plain").fetchone()
        expected.check_table(kind, *answer)


def test_a_wrong_count_is_an_error_and_no_figure():
    expected = a_row_set().expected(SET_ROWS)

    with pytest.raises(BenchError, match="rows in the lake"):
        expected.check_lake("archive", SET_ROWS - 1)
    with pytest.raises(BenchError, match="it should have"):
        expected.check_table("table", expected.keys, expected.sum_of_last_numbers + 1)


def test_rows_that_cannot_be_dealt_out_evenly_are_refused():
    with pytest.raises(BenchError, match="no multiple"):
        RowSet(1_000)
