import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet
import pytest
from tests.pipelines.sinks.lake.lakes import data_files, offsets_in, records, run_of, write

from headrace.pipelines.definition import OpenSink
from headrace.pipelines.errors import SinkError
from headrace.pipelines.hadoop_files import HadoopFiles
from headrace.pipelines.sinks.lake import LakeSink, compact_lake, read_lake
from headrace.pipelines.sinks.lake import compaction as compaction_module

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


class Crash(BaseException):
    """What `kill -9` would be: nothing catches it."""


@pytest.fixture(scope="module")
def written(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three small batches in one hour that is long over."""
    path = tmp_path_factory.mktemp("written")
    sink = LakeSink(str(path)).open(run_of(spark, "a"))
    for batch in range(3):
        write(sink, records(spark, batch * 4, batch * 4 + 4, hours=1), batch)
    return path


@pytest.fixture
def lake(written: Path, tmp_path: Path) -> Path:
    """A copy of it, to be changed."""
    return Path(shutil.copytree(written, tmp_path / "lake"))


def test_small_files_become_one_in_the_order_of_the_log(spark: "SparkSession", lake: Path) -> None:
    before = read_lake(spark, str(lake)).collect()

    merged, made = compact_lake(spark, str(lake))

    (only,) = data_files(lake)
    assert (merged, made) == (6, 1)
    assert sorted(read_lake(spark, str(lake)).collect(), key=repr) == sorted(before, key=repr)
    table = pyarrow.parquet.read_table(only, partitioning=None)
    assert "date" not in table.column_names
    places = list(zip(*(table[name].to_pylist() for name in ("partition", "offset")), strict=True))
    assert places == sorted(places)
    assert compact_lake(spark, str(lake)) == (0, 0)
    assert not list(lake.glob("_headrace/staging/*/*"))
    assert not (lake / "_headrace/compacting").exists()


@pytest.mark.parametrize("step", ["note", "add", "first remove", "done"])
def test_a_crash_while_compacting_keeps_each_row_once(
    spark: "SparkSession", lake: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    monkeypatch.setattr(compaction_module, "is_quiet", lambda *arguments: True)
    sink = LakeSink(str(lake)).open(run_of(spark, "a"))
    with pytest.MonkeyPatch.context() as patch:
        _crash_while_compacting(patch, step)
        with pytest.raises(Crash):
            _compact_between_batches(sink, spark)

    write(LakeSink(str(lake)).open(run_of(spark, "a")), records(spark, 12, 16, hours=1), 51)

    assert offsets_in(lake) == [*range(16), *range(100, 104)]
    assert not (lake / "_headrace/compacting").exists()


def test_between_batches_an_hour_that_is_over_and_quiet_is_merged(
    spark: "SparkSession", lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = LakeSink(str(lake)).open(run_of(spark, "a"))
    _compact_between_batches(sink, spark)
    assert len(data_files(lake)) == 8

    later = time.time() + 3600
    monkeypatch.setattr(compaction_module.time, "time", lambda: later)
    sink.between_batches()

    assert len(data_files(lake)) == 1
    assert offsets_in(lake) == [*range(12), *range(100, 104)]


def test_two_do_not_compact_at_once(spark: "SparkSession", lake: Path) -> None:
    now_ms = int(time.time() * 1000)
    lock = lake / "_headrace/compacting"
    lock.write_text(f'{{"app": "other", "token": "x", "since_ms": "{now_ms}"}}')
    with pytest.raises(SinkError, match="compacted by another"):
        compact_lake(spark, str(lake))

    # The lease of one who died runs out.
    lock.write_text('{"app": "other", "token": "x", "since_ms": "0"}')
    assert compact_lake(spark, str(lake)) == (6, 1)


def test_files_that_a_note_still_speaks_of_are_left_alone(
    spark: "SparkSession", lake: Path
) -> None:
    folder = lake / "_headrace/commits/other"
    folder.mkdir()
    moved = data_files(lake)[0].relative_to(lake)
    note = f'{{"moves": [["_headrace/staging/other/x/f", "{moved}"]], "removes": []}}'
    (folder / f"batch-{7:019}.json").write_text(note)

    compact_lake(spark, str(lake))

    assert lake / moved in data_files(lake)
    assert offsets_in(lake) == list(range(12))


def _compact_between_batches(sink: OpenSink, spark: "SparkSession") -> None:
    write(sink, records(spark, 100, 104, hours=1), 50)
    sink.between_batches()


def _crash_while_compacting(patch: pytest.MonkeyPatch, step: str) -> None:
    real_write, real_rename = HadoopFiles.write_whole, HadoopFiles.rename
    real_delete = HadoopFiles.delete

    def write_whole(self: HadoopFiles, name: str, text: str) -> None:
        real_write(self, name, text)
        if step == "note" and "/compaction-" in name:
            raise Crash

    def rename(self: HadoopFiles, name: str, new_name: str) -> bool:
        done = real_rename(self, name, new_name)
        if step == "add" and "-merged-" in new_name:
            raise Crash
        return done

    def delete(self: HadoopFiles, name: str) -> None:
        if step == "done" and "/compaction-" in name:
            raise Crash
        real_delete(self, name)
        if step == "first remove" and name.startswith("date="):
            raise Crash

    patch.setattr(HadoopFiles, "write_whole", write_whole)
    patch.setattr(HadoopFiles, "rename", rename)
    patch.setattr(HadoopFiles, "delete", delete)
