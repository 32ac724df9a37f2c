from importlib import metadata
from pathlib import Path

import pytest

from headrace.pipelines.errors import SparkError
from headrace.pipelines.spark.installation import check_pyspark


def install(monkeypatch: pytest.MonkeyPatch, version: str | None) -> None:
    def find(name: str) -> str:
        assert name == "pyspark"
        if version is None:
            raise metadata.PackageNotFoundError(name)
        return version

    monkeypatch.setattr(metadata, "version", find)
    monkeypatch.delenv("HEADRACE_SPARK_JARS", raising=False)


def test_the_version_of_the_jars_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, "4.2.0")

    assert check_pyspark() == "4.2.0"


def test_a_missing_pyspark_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, None)

    with pytest.raises(SparkError, match=r"pyspark is missing: pip install '\.\[spark\]'"):
        check_pyspark()


def test_another_version_wants_jars_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, "4.3.0")

    with pytest.raises(SparkError, match=r"pyspark 4.3.0 is installed and .* are for 4.2.0"):
        check_pyspark()

    assert check_pyspark(Path("mine.txt")) == "4.3.0"
