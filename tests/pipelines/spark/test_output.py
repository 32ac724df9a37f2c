"""What a user sees of Java, and what is left of it: nothing. In processes of their own."""

import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headrace.errors import InvalidConfigError
from headrace.pipelines.errors import SparkError
from headrace.pipelines.spark.output import default_log_file, launch_java

OPEN = """
import os, sys
from pathlib import Path
from headrace.pipelines.spark.faults import is_retriable, sentence_of
from headrace.pipelines.spark.session import close_session, open_session

def open_quick():
    return open_session("test", is_quick=True, log_file=Path(sys.argv[1]))

def java():
    from pyspark import SparkContext
    return SparkContext._gateway.proc

spark = open_quick()
print(java().pid, flush=True)
"""
KILL_JAVA = """
import signal
java().kill()
java().wait()
try:
    spark.range(3).count()
except Exception as error:
    print(is_retriable(error), sentence_of(error, Path(sys.argv[1])))
close_session(spark)
again = open_quick()
rows = again.range(3).mapInArrow(lambda batches: batches, "id bigint").count()
print(rows, os.environ.get("PYTHONSAFEPATH"))
close_session(again)
"""
WAIT_TO_BE_KILLED = "sys.stdin.read()"
JAVA_END_TIMEOUT_S = 180


def test_a_log_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(SparkError, match=r"cannot write Spark's log .*/file/spark.log: "):
        launch_java(None, tmp_path / "file" / "spark.log", {})  # type: ignore[arg-type]


def read_twice(conf: None, options: dict[str, Any]) -> bytes:
    """In place of Spark's start: a script whose two programs read the settings, as Spark's do."""
    words = shlex.split(os.environ["PYSPARK_SUBMIT_ARGS"])
    path = words[words.index("--properties-file") + 1]
    options = {**options, "stdout": subprocess.PIPE}
    script = 'cat "$0" && find "$TMPDIR" -type f && exec cat "$0"'
    return subprocess.run(["bash", "-c", script, path], check=True, **options).stdout


def test_settings_reach_java_by_a_file_that_no_ending_leaves_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr(tempfile, "tempdir", None)  # it is remembered
    monkeypatch.setattr("pyspark.java_gateway.launch_gateway", read_twice)
    conf = SimpleNamespace(getAll=lambda: [("spark.password", "hunter2 ö")])

    read = launch_java(conf, tmp_path / "spark.log", {})  # type: ignore[arg-type]

    assert read == b"spark.password=hunter2\\u0020\\u00f6\n" * 2


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [("spark.password", "hunter\udcff", "spark.password"), ("a\udcff", "b", r"a\\udcff")],
)
def test_a_setting_that_is_no_text_is_named_without_its_value(
    name: str, value: str, shown: str, tmp_path: Path
) -> None:
    conf = SimpleNamespace(getAll=lambda: [(name, value)])

    with pytest.raises(InvalidConfigError, match=f"setting {shown}: write .* in UTF-8$"):
        launch_java(conf, tmp_path / "spark.log", {})  # type: ignore[arg-type]


def test_the_state_directory_holds_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_STATE_DIR", "/state")

    assert default_log_file() == Path("/state/spark.log")


@pytest.mark.spark
@pytest.mark.slow
def test_a_killed_java_is_told_in_one_sentence_and_replaced(tmp_path: Path) -> None:
    log_file = tmp_path / "spark.log"
    driver = tmp_path / "driver.py"
    driver.write_text(OPEN + KILL_JAVA, "utf-8")
    # Traps: a module of a standard name where we are, another Spark's home, a server to go to.
    here = tmp_path / "here"
    here.mkdir()
    (here / "json.py").write_text("raise SystemExit('the wrong json was imported')")
    traps = {"SPARK_HOME": "/nowhere", "SPARK_REMOTE": "sc://127.0.0.1:1"}

    answer = subprocess.run(
        [sys.executable, driver, log_file],
        capture_output=True,
        text=True,
        cwd=here,
        env={**os.environ, **traps},
    )

    assert answer.stderr == ""
    _, sentence, rows = answer.stdout.splitlines()
    assert sentence == (
        f"True Spark's Java process ended while it was needed (details in {log_file})"
    )
    assert rows == "3 None"


@pytest.mark.spark
@pytest.mark.slow
def test_java_ends_with_a_driver_that_is_killed(tmp_path: Path) -> None:
    driver = subprocess.Popen(
        [sys.executable, "-c", OPEN + WAIT_TO_BE_KILLED, tmp_path / "spark.log"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with driver:
        assert driver.stdout
        java_id = int(driver.stdout.readline())
        driver.send_signal(signal.SIGKILL)

    deadline = time.monotonic() + JAVA_END_TIMEOUT_S
    while Path(f"/proc/{java_id}").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(f"/proc/{java_id}").exists()
