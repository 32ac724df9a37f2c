import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.pipelines.sinks.lake.lakes import (
    batch_of,
    data_files,
    offsets_in,
    records,
    run_of,
    write,
)

from headrace.pipelines.errors import SinkError
from headrace.pipelines.hadoop_files import HadoopFiles
from headrace.pipelines.sinks.lake import LakeSink, read_lake
from headrace.pipelines.spans import Spans, Written

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


class Crash(BaseException):
    """What `kill -9` would be: nothing catches it."""


def crash_at(
    monkeypatch: pytest.MonkeyPatch, method: str, when: Callable[[str], bool], *, is_after: bool
) -> None:
    """Make a call of the file system the last thing the process does."""
    real = getattr(HadoopFiles, method)

    def crashing(self: HadoopFiles, name: str, *others: str) -> object:
        if not when(name):
            return real(self, name, *others)
        if is_after:
            real(self, name, *others)
        raise Crash

    monkeypatch.setattr(HadoopFiles, method, crashing)


def is_note(name: str) -> bool:
    return "/commits/" in name


def is_second_move(name: str) -> bool:
    return "/staging/" in name and "hour=11" in name


def is_staging(name: str) -> bool:
    return "/staging/" in name


# (name, method, which call, whether it still happens)
STEPS = [
    ("before the note", "write_whole", is_note, False),
    ("with the note written", "write_whole", is_note, True),
    ("before the second move", "rename", is_second_move, False),
    ("after the second move", "rename", is_second_move, True),
    ("before it is marked done", "rename", lambda name: name.endswith(".json"), False),
    ("after it is marked done", "rename", lambda name: name.endswith(".json"), True),
    ("before the last done note is dropped", "delete", is_note, False),
    ("before staging is removed", "delete", is_staging, False),
]


def test_a_crash_at_any_step_leaves_each_row_once(spark: "SparkSession", tmp_path: Path) -> None:
    lake, sink = tmp_path / "lake", LakeSink(str(tmp_path / "lake"))
    write(sink.open(run_of(spark, "a")), records(spark, 0, 4), batch_of(0, 0, 4))
    for number, (step, method, when, is_after) in enumerate(STEPS, 1):
        rows = records(spark, number * 4, number * 4 + 4)
        batch = batch_of(number, number * 4, number * 4 + 4)
        opened = sink.open(run_of(spark, "a"))
        with pytest.MonkeyPatch.context() as patch:
            crash_at(patch, method, when, is_after=is_after)
            with pytest.raises(Crash):
                write(opened, rows, batch)
        # A task of the dead attempt that has not heard of it yet.
        if late := next(lake.glob("_headrace/staging/a/*/date=*/hour=*"), None):
            (late / "part-99999-late.parquet").write_bytes(b"half a fi")

        write(sink.open(run_of(spark, "a")), rows, batch)

        assert offsets_in(lake) == list(range(number * 4 + 4)), step
        (note,) = lake.glob("_headrace/commits/a/batch*")
        noted = Written.from_json(json.dumps(json.loads(note.read_text())["written"]))
        assert note.suffix == ".done", step
        assert noted == Written(number, batch_of(0, 0, number * 4 + 4).holds or Spans()), step
        assert not list(lake.glob("_headrace/staging/a/*")), step


def test_a_write_that_failed_is_made_good_by_the_next_without_opening_again(
    spark: "SparkSession", tmp_path: Path
) -> None:
    sink = LakeSink(str(tmp_path)).open(run_of(spark, "a"))
    with pytest.MonkeyPatch.context() as patch:
        crash_at(patch, "rename", is_second_move, is_after=False)
        with pytest.raises(Crash):
            write(sink, records(spark, 0, 4), 0)

    assert not write(sink, records(spark, 0, 4), 0)
    assert offsets_in(tmp_path) == [0, 1, 2, 3]


def test_a_repeated_batch_changes_nothing(spark: "SparkSession", tmp_path: Path) -> None:
    sink = LakeSink(str(tmp_path)).open(run_of(spark, "a"))

    assert write(sink, records(spark, 0, 4), 0)
    before = data_files(tmp_path)
    assert not write(sink, records(spark, 0, 4), 0)
    assert not write(LakeSink(str(tmp_path)).open(run_of(spark, "a")), records(spark, 0, 4), 0)

    assert data_files(tmp_path) == before


def test_two_apps_share_a_lake_and_their_batch_numbers_do_not_meet(
    spark: "SparkSession", tmp_path: Path
) -> None:
    sink = LakeSink(str(tmp_path))
    one = sink.open(run_of(spark, "a"))
    with pytest.MonkeyPatch.context() as patch:
        crash_at(patch, "rename", is_second_move, is_after=False)
        with pytest.raises(Crash):
            write(one, records(spark, 0, 4), 0)

    # The other is at work while the first is between its note and its moves.
    other = sink.open(run_of(spark, "b"))
    assert write(other, records(spark, 4, 8), 0)
    assert list(tmp_path.glob("_headrace/staging/a/*/date=*"))
    sink.open(run_of(spark, "a"))

    assert offsets_in(tmp_path) == list(range(8))


def test_only_attempts_that_are_old_and_that_no_note_speaks_of_are_removed(
    spark: "SparkSession", tmp_path: Path
) -> None:
    staging = tmp_path / "_headrace/staging/gone"
    old, noted, young = (
        staging / name for name in ("batch-1-1000-a", "batch-2-1000-b", "batch-3-99999999999999-c")
    )
    for attempt in (old, noted, young):
        (attempt / "date=2026-01-01").mkdir(parents=True)
    commits = tmp_path / "_headrace/commits/gone"
    commits.mkdir(parents=True)
    move = [f"{noted.relative_to(tmp_path)}/date=2026-01-01/x.parquet", "date=2026-01-01/y.parquet"]
    (commits / f"batch-{2:019}.json").write_text(json.dumps({"moves": [move], "removes": []}))

    LakeSink(str(tmp_path)).open(run_of(spark, "a"))

    assert [each.exists() for each in (old, noted, young)] == [False, True, True]


def test_a_note_of_one_who_will_not_come_back_is_finished_by_the_next(
    spark: "SparkSession", tmp_path: Path
) -> None:
    sink = LakeSink(str(tmp_path))
    with pytest.MonkeyPatch.context() as patch:
        crash_at(patch, "rename", is_second_move, is_after=False)
        with pytest.raises(Crash):
            write(sink.open(run_of(spark, "a")), records(spark, 0, 4), 0)
    (note,) = tmp_path.glob("_headrace/commits/a/batch-*.json")
    os.utime(note, (0, 0))

    sink.open(run_of(spark, "b"))

    assert offsets_in(tmp_path) == [0, 1, 2, 3]


def test_rows_lie_in_the_hour_of_their_time_in_utc(spark: "SparkSession", tmp_path: Path) -> None:
    spark.conf.set("spark.sql.session.timeZone", "Asia/Kolkata")
    try:
        write(LakeSink(str(tmp_path)).open(run_of(spark, "a")), records(spark, 0, 4), 0)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")

    folders = sorted(str(path.parent.relative_to(tmp_path)) for path in data_files(tmp_path))
    assert set(folders) == {"date=2026-11-16/hour=10", "date=2026-11-16/hour=11"}
    rows = read_lake(spark, str(tmp_path))
    assert dict(rows.dtypes)["date"] == "date"
    assert dict(rows.dtypes)["hour"] == "int"
    assert rows.where("date = '2026-11-16' and hour = 11 and offset % 2 = 1").count() == 2


def test_a_batch_of_many_partitions_and_few_rows_writes_few_files(
    spark: "SparkSession", tmp_path: Path
) -> None:
    rows = records(spark, 0, 60, hours=1).repartition(60, "offset")

    write(LakeSink(str(tmp_path)).open(run_of(spark, "a")), rows, 0)

    assert len(data_files(tmp_path)) <= 8
    assert offsets_in(tmp_path) == list(range(60))


def test_a_batch_is_written_without_sorting_or_shuffling(
    spark: "SparkSession", tmp_path: Path
) -> None:
    write(LakeSink(str(tmp_path)).open(run_of(spark, "a")), records(spark, 0, 4), 0)

    plans = spark._jsparkSession.sharedState().statusStore().executionsList()
    plan = plans.last().physicalPlanDescription()
    assert "InsertIntoHadoopFsRelationCommand" in plan
    assert "Sort" not in plan
    assert "Exchange" not in plan


def test_a_batch_without_rows_is_no_file_but_it_is_noted(
    spark: "SparkSession", tmp_path: Path
) -> None:
    sink = LakeSink(str(tmp_path)).open(run_of(spark, "a"))

    assert write(sink, records(spark, 0, 0), batch_of(0, 0, 4))

    assert not data_files(tmp_path)
    assert LakeSink(str(tmp_path)).open(run_of(spark, "a")).written() == Written().after(
        batch_of(0, 0, 4)
    )


def test_rows_without_a_time_are_refused_with_the_fix(
    spark: "SparkSession", tmp_path: Path
) -> None:
    sink = LakeSink(str(tmp_path)).open(run_of(spark, "a"))

    with pytest.raises(SinkError, match="--option time=COLUMN"):
        write(sink, spark.range(2), 0)


def test_a_file_that_vanished_before_it_was_moved_is_named(
    spark: "SparkSession", tmp_path: Path
) -> None:
    sink = LakeSink(str(tmp_path))
    with pytest.MonkeyPatch.context() as patch:
        crash_at(patch, "rename", is_second_move, is_after=False)
        with pytest.raises(Crash):
            write(sink.open(run_of(spark, "a")), records(spark, 0, 4), 0)
    for path in tmp_path.glob("_headrace/staging/a/*/date=*/hour=11/*.parquet"):
        path.unlink()

    with pytest.raises(SinkError, match="committed batch and is gone"):
        sink.open(run_of(spark, "a"))
