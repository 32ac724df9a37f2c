import subprocess
from pathlib import Path

import pytest

from headrace.pipelines.errors import SparkError
from headrace.pipelines.spark.class_archive import archive_path, build_archive, use_archive

pytestmark = pytest.mark.java


def test_an_archive_is_for_one_pyspark_and_one_list_of_jars() -> None:
    jars = [Path("/a.jar")]
    path = archive_path(jars, "4.2.0")

    assert path == archive_path(jars, "4.2.0")
    assert path != archive_path(jars, "4.2.1")
    assert path != archive_path([*jars, Path("/b.jar")], "4.2.0")


def test_no_archive_no_flags(tmp_path: Path) -> None:
    assert use_archive(tmp_path / "none.jsa") == []


@pytest.mark.parametrize("leaves_file", [True, False])
def test_a_workload_that_fails_leaves_no_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, leaves_file: bool
) -> None:
    path = tmp_path / "spark.jsa"

    def fail(command: list[str | Path], **_: object) -> subprocess.CompletedProcess[str]:
        if leaves_file:
            Path(command[-2]).touch()
        return subprocess.CompletedProcess(command, 1, "", "the broker does not answer\n")

    monkeypatch.setattr(subprocess, "run", fail)

    with pytest.raises(SparkError, match="could not be built: the broker does not answer; Spark"):
        build_archive(path, "127.0.0.1:1", "readings", tmp_path / "log")

    assert list(tmp_path.iterdir()) == []
