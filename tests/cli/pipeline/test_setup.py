import json
from importlib import metadata
from pathlib import Path

import pytest
from typer.testing import CliRunner

from headrace.cli.app import app

COMMAND = ["pipeline", "setup"]


def test_a_missing_pyspark_ends_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def find(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", find)

    result = CliRunner().invoke(app, COMMAND)

    assert result.exit_code == 1
    assert result.stderr.startswith(
        "headrace: pipelines run on Spark, and pyspark is missing: pip install '.[spark]' in a "
    )
    assert result.stderr.count("\n") == 1


@pytest.mark.spark
def test_what_is_there_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEADRACE_SPARK_JARS", raising=False)

    result = CliRunner().invoke(app, [*COMMAND, "--no-archive", "--json"])

    assert result.exit_code == 0
    facts = json.loads(result.stdout)
    assert facts["pyspark"] == metadata.version("pyspark")
    assert set(facts) == {"pyspark", "java", "jars", "archive"}


@pytest.mark.java
def test_a_jar_list_that_is_not_there_is_named(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, [*COMMAND, "--jars", str(tmp_path / "none.txt")])

    assert result.exit_code == 1
    assert "cannot read the jar list" in result.stderr


@pytest.mark.spark
@pytest.mark.slow
def test_setup_builds_an_archive_that_java_uses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = tmp_path / "spark.jsa"
    monkeypatch.setattr("headrace.pipelines.spark.class_archive.archive_path", lambda *_: built)
    monkeypatch.setenv("HEADRACE_STATE_DIR", str(tmp_path))

    result = CliRunner().invoke(app, COMMAND)

    assert result.exit_code == 0, result.output
    assert built.stat().st_size > 100_000_000
    assert [path.name for path in tmp_path.glob("*.jsa*")] == ["spark.jsa"]
