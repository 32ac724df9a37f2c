import subprocess
import sys
from pathlib import Path

import pytest

from headrace.pipelines.spark.worker_code import worker_zip

USE = """
import sys
sys.path.insert(0, sys.argv[1])
import headrace.errors, headrace.pipelines.definition, headrace.client.bus, headrace.patience
print(headrace.pipelines.definition.__file__)
import importlib.util
print(importlib.util.find_spec("headrace.broker"))
"""

# What workers import, and all of the client: a function of its may come along any day.
USE_ALL = """
import sys
sys.path.insert(0, sys.argv[1])
import importlib, pkgutil
import headrace.client
import headrace.pipelines.dead_letters.sending, headrace.pipelines.sinks.topic_writer
for each in pkgutil.iter_modules(headrace.client.__path__, "headrace.client."):
    importlib.import_module(each.name)
    print(each.name)
"""


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HEADRACE_CACHE_DIR", str(tmp_path))
    return worker_zip()


def test_a_worker_imports_our_code_from_the_zip_and_no_broker(archive: Path) -> None:
    answer = subprocess.run(
        [sys.executable, "-c", USE, archive], capture_output=True, text=True, check=True
    )

    place, broker = answer.stdout.splitlines()
    assert place.startswith(str(archive))
    assert broker == "None"


def test_all_that_the_client_imports_travels_with_it(archive: Path) -> None:
    answer = subprocess.run(
        [sys.executable, "-c", USE_ALL, archive], capture_output=True, text=True, check=False
    )

    assert answer.stderr == ""
    assert {"headrace.client.producer", "headrace.client.ranges"} <= {*answer.stdout.split()}


def test_the_same_code_makes_the_same_zip(archive: Path) -> None:
    written = archive.stat().st_mtime_ns

    assert worker_zip() == archive
    assert archive.stat().st_mtime_ns == written
    assert list(archive.parent.iterdir()) == [archive]
