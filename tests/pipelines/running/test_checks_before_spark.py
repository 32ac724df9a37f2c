"""What is wrong with a run is told before a Java process is started for it."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.pipelines.running.stage import JsonFiles, a_pipeline, a_topic

from headrace.client.bus import Bus
from headrace.pipelines.definition import Pipeline
from headrace.pipelines.errors import PipelineDefinitionError, RunError, SourceError
from headrace.pipelines.running.checkpoint import Checkpoint
from headrace.pipelines.running.run_state import FAILED, find_run
from headrace.pipelines.running.runner import run_pipeline
from headrace.pipelines.running.settings import RunSettings, Trigger
from headrace.testing import running_broker


@pytest.fixture(scope="module")
def bus() -> Iterator[Bus]:
    with running_broker() as broker:
        yield Bus(broker.bootstrap)


@pytest.fixture(autouse=True)
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail where a session would be opened."""

    def refuse(*arguments: object, **more: object) -> None:
        pytest.fail("Spark was started")

    monkeypatch.setattr("headrace.pipelines.spark.session.open_session", refuse)


def run(pipeline: Pipeline, bus: Bus, directory: Path, name: str = "r") -> None:
    run_pipeline(pipeline, bus, RunSettings(name=name, state_dir=directory))


def test_a_topic_that_is_not_there_is_told(bus: Bus, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="nosuch") as raised:
        run(a_pipeline("nosuch", JsonFiles(tmp_path)), bus, tmp_path)

    status = find_run(tmp_path, "r")
    assert (status.state, status.message) == (FAILED, str(raised.value))


def test_a_broker_that_is_not_there_is_told(tmp_path: Path, unused_port: int) -> None:
    with pytest.raises(SourceError, match=f"127.0.0.1:{unused_port}"):
        run(a_pipeline("t", JsonFiles(tmp_path)), Bus(f"127.0.0.1:{unused_port}"), tmp_path)


def test_a_checkpoint_of_another_pipeline_or_other_topics_is_refused(
    bus: Bus, tmp_path: Path
) -> None:
    topic, other = a_topic(bus), a_topic(bus)
    sink = JsonFiles(tmp_path / "out")
    place = tmp_path / "pipelines/r/checkpoint"
    app_id = Checkpoint(str(place)).claim(a_pipeline(topic, sink))
    (place / "offsets").mkdir()
    (place / "offsets/0").write_text("v1\n{}\n{}")

    assert Checkpoint(f"file://{place}").claim(a_pipeline(topic, sink)) == app_id
    with pytest.raises(RunError, match=r"belongs to pipeline numbers, not to more; choose"):
        run(a_pipeline(topic, sink, name="more"), bus, tmp_path)
    with pytest.raises(RunError, match=rf"belongs to source topics {topic}, not to topics {other}"):
        run(a_pipeline(other, sink), bus, tmp_path)


def test_a_run_that_failed_its_checks_does_not_bind_the_checkpoint(
    bus: Bus, tmp_path: Path
) -> None:
    place = str(tmp_path / "pipelines/r/checkpoint")
    misspelt, meant = (a_pipeline(each, JsonFiles(tmp_path)) for each in ("ordrs", "orders"))
    with pytest.raises(SourceError, match="no topic ordrs"):
        run(misspelt, bus, tmp_path)

    app_id = Checkpoint(place).claim(meant)

    assert Checkpoint(place).claim(meant) == app_id


def test_a_checkpoint_that_spark_alone_has_made_is_refused(bus: Bus, tmp_path: Path) -> None:
    place = tmp_path / "pipelines/r/checkpoint"
    (place / "offsets").mkdir(parents=True)
    (place / "offsets/0").write_text("v1\n{}\n{}")

    with pytest.raises(RunError, match="was not made by headrace"):
        run(a_pipeline(a_topic(bus), JsonFiles(tmp_path)), bus, tmp_path)


def test_offsets_of_a_checkpoint_that_are_gone_are_told(bus: Bus, tmp_path: Path) -> None:
    topic = a_topic(bus, range(10), partitions=1)
    pipeline = a_pipeline(topic, JsonFiles(tmp_path))
    place = tmp_path / "pipelines/r/checkpoint"
    checkpoint = Checkpoint(str(place))
    checkpoint.claim(pipeline)
    for name in ("offsets", "commits"):
        (place / name).mkdir()
    # Batch 1 has begun and is not done: what counts is where batch 0 ended.
    for number, offset in enumerate((99, 5)):
        offsets = json.dumps({topic: {"0": offset}})
        (place / f"offsets/{number}").write_text(f"v1\n{{}}\n{offsets}")
    (place / "commits/0").write_text("v1\n{}")

    assert checkpoint.next_offsets() == {topic: {"0": 99}}
    with pytest.raises(SourceError, match="99, is not there yet: partition 0"):
        run(pipeline, bus, tmp_path)


def test_a_checkpoint_elsewhere_is_locked_by_its_name(tmp_path: Path) -> None:
    there, also_there = Checkpoint("s3a://bucket/c"), Checkpoint("s3a://bucket/c/")

    assert there.lock_file(tmp_path) == also_there.lock_file(tmp_path)
    assert there.lock_file(tmp_path) != Checkpoint("s3a://bucket/d").lock_file(tmp_path)
    assert not there.is_readable


@pytest.mark.parametrize("name", ["", "a b", "../up", ".hidden", "x" * 201])
def test_a_name_that_could_be_no_directory_is_refused(name: str) -> None:
    with pytest.raises(PipelineDefinitionError, match="run name"):
        RunSettings(name=name)


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("continuous", {"processingTime": "0 seconds"}),
        ("available-now", {"availableNow": True}),
        ("30s", {"processingTime": "30 seconds"}),
        ("500ms", {"processingTime": "500 milliseconds"}),
        ("5m", {"processingTime": "5 minutes"}),
    ],
)
def test_a_trigger_is_sparks(text: str, arguments: dict[str, object]) -> None:
    assert Trigger(text).spark_arguments() == arguments


@pytest.mark.parametrize("text", ["", "now", "0s", "30", "-1s", "1 week"])
def test_a_trigger_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(PipelineDefinitionError, match="available-now or an interval such as"):
        Trigger(text)
