"""Batches that come again, with other numbers, other records, or from two at once."""

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.pipelines.sinks.lake.lakes import batch_of, records, run_of, write, writer_to

from headrace.pipelines.definition import OpenSink
from headrace.pipelines.errors import SinkError
from headrace.pipelines.hadoop_files import HadoopFiles
from headrace.pipelines.sinks.lake import LakeSink, read_lake
from headrace.pipelines.sinks.lake.delta_notes import DeltaNotes
from headrace.pipelines.sinks.lake.notes import OvertakenError
from headrace.pipelines.spans import Batch, Written

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

both = pytest.mark.parametrize("kind", ["parquet", "delta"])


@both
def test_of_a_number_that_comes_again_exactly_the_missing_rows_are_added(
    spark: "SparkSession", tmp_path: Path, kind: str
) -> None:
    lake = LakeSink(str(tmp_path / "lake"), kind)
    writer_to(spark, lake.open(run_of(spark, "a"))).write(records(spark, 0, 10), batch_of(0, 0, 10))
    opened = lake.open(run_of(spark, "a"))
    writer = writer_to(spark, opened)
    # The checkpoint was put back, so the numbers begin anew and the ranges are others.
    writer.write(records(spark, 0, 20), batch_of(0, 0, 20))
    assert offsets_of(spark, lake) == list(range(20))
    for number, first, last in ((7, 20, 24), (3, 22, 28)):
        writer.write(records(spark, first, last), batch_of(number, first, last))
    assert offsets_of(spark, lake) == list(range(28))

    # Of another app a lake has nothing, whatever it has of this one.
    other = lake.open(run_of(spark, "b"))
    assert other.written() == Written()
    # The user throws the lake away while it is written to: what comes next is all there is.
    shutil.rmtree(lake.path)
    writer.write(records(spark, 26, 30), batch_of(4, 26, 30))
    assert offsets_of(spark, lake) == [26, 27, 28, 29]
    assert lake.open(run_of(spark, "a")).written() == Written().after(batch_of(4, 26, 30))


@both
def test_an_attempt_that_was_overtaken_writes_nothing(
    spark: "SparkSession", tmp_path: Path, kind: str
) -> None:
    lake = LakeSink(str(tmp_path / "lake"), kind)
    late, later, now = (lake.open(run_of(spark, "a")) for _ in range(3))
    for sink in (late, later):
        assert sink.written() == Written()
    assert write(now, records(spark, 0, 4), batch_of(0, 0, 4))

    # Both looked before there was anything: one brings the same, the other more.
    assert not late.write(records(spark, 0, 4), batch_of(0, 0, 4))
    with pytest.raises(OvertakenError, match="another attempt of this run wrote"):
        later.write(records(spark, 0, 6), batch_of(0, 0, 6))

    writer_to(spark, later).write(records(spark, 0, 6), batch_of(0, 0, 6))
    assert offsets_of(spark, lake) == list(range(6))


def test_a_note_that_comes_after_its_files_were_cleared_away_is_void(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = LakeSink(str(tmp_path))
    dead = lake.open(run_of(spark, "a"))
    real = HadoopFiles.write_whole
    successors = list[OpenSink]()

    def write_whole(self: HadoopFiles, name: str, text: str) -> None:
        if "/commits/a/" in name and not successors:
            # The next run starts at the very moment in which this one notes what it staged.
            monkeypatch.setattr(HadoopFiles, "write_whole", real)
            successors.append(lake.open(run_of(spark, "a")))
        real(self, name, text)

    monkeypatch.setattr(HadoopFiles, "write_whole", write_whole)
    with pytest.raises(OvertakenError):
        write(dead, records(spark, 0, 4), batch_of(0, 0, 4))

    (successor,) = successors
    assert write(successor, records(spark, 0, 4), batch_of(0, 0, 4))
    assert write(lake.open(run_of(spark, "a")), records(spark, 4, 6), batch_of(1, 4, 6))
    assert offsets_of(spark, lake) == list(range(6))


def test_a_note_that_is_not_done_though_a_later_one_is_counts_for_nothing(
    spark: "SparkSession", tmp_path: Path
) -> None:
    lake = LakeSink(str(tmp_path))
    sink = lake.open(run_of(spark, "a"))
    for number in range(2):
        write(sink, records(spark, number, number + 1), batch_of(number, number, number + 1))
    gone = {"moves": [["_headrace/staging/a/gone", "date=2026-11-16/hour=10/x.parquet"]]}
    for number in range(2):
        note = tmp_path / f"_headrace/commits/a/batch-{number:019}.json"
        note.write_text(json.dumps({**gone, "removes": []}))

    assert lake.open(run_of(spark, "a")).written() == Written().after(batch_of(0, 0, 1)).after(
        batch_of(1, 1, 2)
    )
    assert not list(tmp_path.glob("_headrace/commits/a/*.json"))


def test_notes_of_the_version_before_are_understood(spark: "SparkSession", tmp_path: Path) -> None:
    parquet = LakeSink(str(tmp_path / "parquet"))
    notes = tmp_path / "parquet/_headrace/commits/a"
    notes.mkdir(parents=True)
    (notes / f"batch-{7:019}.done").write_text('{"moves": [], "removes": []}')
    delta = LakeSink(str(tmp_path / "delta"), "delta")
    write(delta.open(run_of(spark, "other")), records(spark, 0, 1), Batch(0))
    plain = (
        read_lake(spark, delta.path).write.format("delta").mode("append").option("txnAppId", "a")
    )
    plain.option("txnVersion", 7).save(delta.path)

    for lake in (parquet, delta):
        sink = lake.open(run_of(spark, "a"))
        assert sink.written() == Written.former(7)
        assert not write(sink, records(spark, 2, 3), batch_of(7, 2, 3))
        assert write(sink, records(spark, 2, 3), batch_of(8, 2, 3))
        assert sink.written() == Written().after(batch_of(8, 2, 3))


def test_what_a_delta_table_has_is_known_after_a_crash_and_after_its_log_was_cleaned(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = LakeSink(str(tmp_path / "lake"), "delta")
    write(lake.open(run_of(spark, "a")), records(spark, 0, 2), batch_of(0, 0, 2))
    kept = tmp_path / "lake/_headrace/delta/a"
    assert [each.name for each in kept.glob("*.json")] == ["0.json"]

    # It dies between Delta's commit and the file beside the table.
    (kept / "0.json").rename(kept / "-1.json")
    assert lake.open(run_of(spark, "a")).written() == Written().after(batch_of(0, 0, 2))

    # Delta's log is cleaned: with the file, nothing is asked of it; without, nothing is guessed.
    table = _FakeTable("id", 5)
    notes = DeltaNotes(spark, lake.path, "a")
    (kept / "3.json").write_text(
        '{"table": "id", "attempt": "x", "written": {"batch": 9, "spans": []}}'
    )
    notes.refresh(table)  # type: ignore[arg-type]
    assert notes.said.written == Written(9)
    (kept / "3.json").unlink()
    (tmp_path / "lake/_delta_log" / f"{0:020}.json").unlink()
    with pytest.raises(Exception, match="no longer has version 3"):
        DeltaNotes(spark, lake.path, "a").refresh(table)  # type: ignore[arg-type]


class _FakeTable:
    """A table whose app committed version 3, long ago."""

    def __init__(self, table_id: str, version: int) -> None:
        self.table_id, self.version = table_id, version

    def version_of(self, app_id: str) -> int:
        return 3


def offsets_of(spark: "SparkSession", lake: LakeSink) -> list[int]:
    return sorted(row[0] for row in read_lake(spark, lake.path).select("offset").collect())


@pytest.mark.parametrize(("first", "second"), [("parquet", "delta"), ("delta", "parquet")])
def test_a_directory_of_one_format_is_not_written_in_the_other(
    spark: "SparkSession", tmp_path: Path, first: str, second: str
) -> None:
    """Compaction would take away files that Delta's log names."""
    place = str(tmp_path / "lake")
    lake = LakeSink(place, first).open(run_of(spark, "a"))
    writer_to(spark, lake).write(records(spark, 0, 10), batch_of(0, 0, 10))

    with pytest.raises(SinkError, match=f"write {first}:PATH"):
        LakeSink(place, second).open(run_of(spark, "a"))
