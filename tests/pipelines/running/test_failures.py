"""However a run fails, it says so in one sentence, which is made before Java is gone."""

import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import MagicMock

import pytest
from tests.pipelines.running.stage import JsonFiles, Numbers

from headrace.client.bus import Bus
from headrace.pipelines.definition import OpenSink, Pipeline, Run, Sink, Source
from headrace.pipelines.errors import SinkError, SparkError
from headrace.pipelines.running.run_state import FAILED, STOPPED, find_run
from headrace.pipelines.running.runner import run_pipeline
from headrace.pipelines.running.settings import RunSettings, Trigger
from headrace.pipelines.sinks.console import NobodyReadsError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Java:
    """A session whose Java has the texts of what it raises, until it is closed."""

    def __init__(self) -> None:
        self.is_there = True
        self.session: Any = MagicMock()
        self.session._jvm.java.lang.ProcessHandle.current().pid.return_value = 1

    def failure(self, text: str) -> Exception:
        java = self

        class CapturedError(Exception):
            def __str__(self) -> str:
                assert java.is_there, "asked too late"
                return text

        return CapturedError()

    def close(self, session: object) -> None:
        self.is_there = False


@pytest.fixture
def java(monkeypatch: pytest.MonkeyPatch) -> Iterator[Java]:
    java = Java()
    session = "headrace.pipelines.spark.session"
    monkeypatch.setattr(f"{session}.open_session", lambda *words, **more: java.session)
    monkeypatch.setattr(f"{session}.close_session", java.close)
    yield java
    assert not java.is_there


@dataclass
class Failing(Source):
    """Raises when it is read."""

    error: BaseException
    is_once: bool = False

    def describe(self) -> str:
        return "nothing"

    def check(self, bus: Bus) -> None:
        pass

    @property
    def is_bounded_only(self) -> bool:
        return self.is_once

    def batch(self, run: Run) -> "DataFrame":
        raise self.error

    def stream(self, run: Run) -> "DataFrame":
        raise self.error


def run(source: Source, directory: Path, *sinks: Sink) -> str:
    chosen = sinks or (JsonFiles(directory / "out"),)
    pipeline = Pipeline(name="p", summary="", source=source, decoder=Numbers(), sinks=chosen)
    settings = RunSettings(name="r", state_dir=directory, trigger=Trigger("available-now"))
    with socket.create_server(("127.0.0.1", 0)) as listener:  # a bus that can be reached
        bus = Bus(f"127.0.0.1:{listener.getsockname()[1]}")
        return run_pipeline(pipeline, bus, settings).state


@pytest.mark.parametrize("is_once", [False, True])
def test_what_java_raised_is_put_into_words_while_it_lives(
    java: Java, tmp_path: Path, is_once: bool
) -> None:
    source = Failing(java.failure("java.io.IOException: No space left on device"), is_once)

    with pytest.raises(SinkError, match="the disk is full; make room") as raised:
        run(source, tmp_path)

    assert raised.value.__cause__ is None
    status = find_run(tmp_path, "r")
    assert (status.state, status.message) == (FAILED, str(raised.value))
    assert "No space left" in (tmp_path / "pipelines/r/spark.log").read_text()


def test_a_java_that_died_in_the_middle_is_told_too(java: Java, tmp_path: Path) -> None:
    error = java.failure("never heard")
    java.is_there = False

    with pytest.raises(SparkError, match="Java process ended while it was needed"):
        run(Failing(error, is_once=True), tmp_path)

    assert find_run(tmp_path, "r").state == FAILED


class Closed(Sink):
    """As a console whose reader is gone."""

    def describe(self) -> str:
        return "a closed pipe"

    def open(self, run: Run) -> OpenSink:
        raise NobodyReadsError("nobody reads the output any more")


@pytest.mark.usefixtures("java")
def test_a_reader_who_has_read_enough_is_no_failure(tmp_path: Path) -> None:
    source = Failing(RuntimeError("not reached"), is_once=True)

    assert run(source, tmp_path, Closed()) == STOPPED

    assert find_run(tmp_path, "r").state == STOPPED
