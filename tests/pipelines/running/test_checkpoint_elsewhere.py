"""A checkpoint at a URI, by Hadoop's FileSystem; local files stand in for a store far away."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.pipelines.running.stage import JsonFiles, a_pipeline

from headrace.pipelines.errors import RunError
from headrace.pipelines.running.checkpoint import Checkpoint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_a_checkpoint_at_a_uri_is_claimed_and_read(spark: "SparkSession", tmp_path: Path) -> None:
    place = tmp_path / "c"
    checkpoint = Checkpoint("s3a://bucket/c")
    checkpoint.place = f"file://{place}"
    assert not checkpoint.is_readable
    checkpoint.attach(spark)
    pipeline = a_pipeline("t", JsonFiles(tmp_path))

    app_id = checkpoint.claim(pipeline)

    assert checkpoint.next_offsets() is None
    assert checkpoint.claim(pipeline) == Checkpoint(str(place)).claim(pipeline) == app_id
    for name in ("offsets", "commits"):
        (place / name).mkdir()
        (place / name / "0").write_text('v1\n{}\n{"t": {"0": 7}}')
    assert checkpoint.next_offsets() == {"t": {"0": 7}}
    with pytest.raises(RunError, match="belongs to pipeline numbers"):
        checkpoint.claim(a_pipeline("t", JsonFiles(tmp_path), name="others"))


def test_a_checkpoint_at_a_uri_is_noted_anew_and_set_aside(
    spark: "SparkSession", tmp_path: Path
) -> None:
    checkpoint = Checkpoint("s3a://bucket/c")
    checkpoint.place = f"file://{tmp_path / 'c'}"
    checkpoint.attach(spark)
    checkpoint.claim(a_pipeline("t", JsonFiles(tmp_path)))
    (tmp_path / "c/offsets").mkdir()
    (tmp_path / "c/offsets/0").write_text('v1\n{}\n{"t": {"0": 7}}')

    checkpoint.add_facts({"cluster_id": "c1"})
    checkpoint.add_facts({"cluster_id": "c2"})
    checkpoint.set_aside()

    assert checkpoint.facts["cluster_id"] == "c2"
    assert not checkpoint.is_begun
    assert [each.name for each in (tmp_path / "c").glob("before-*/offsets/*")] == ["0"]
