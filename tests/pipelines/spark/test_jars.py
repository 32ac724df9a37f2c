from pathlib import Path

import pytest

from headrace.java.errors import JarError
from headrace.pipelines.spark.jars import SPARK_VERSION, expected_jars, spark_jar_list

LINE = f"org.example:thing:1.0 {'ab' * 32} 7\n"


def test_the_pinned_list_has_the_connector_of_our_spark() -> None:
    names = [jar.file_name for jar in spark_jar_list()]

    assert f"spark-sql-kafka-0-10_2.13-{SPARK_VERSION}.jar" in names


def test_a_list_of_the_user_s_own_takes_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = tmp_path / "mine.txt"
    mine.write_text(LINE)

    by_option = spark_jar_list(mine)
    monkeypatch.setenv("HEADRACE_SPARK_JARS", str(mine))
    monkeypatch.setenv("HEADRACE_CACHE_DIR", "/cache")

    assert spark_jar_list() == by_option
    assert expected_jars() == [Path("/cache/jars/thing-1.0.jar")]


def test_a_list_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(JarError, match=r"cannot read the jar list .*nowhere.txt: No such file"):
        spark_jar_list(tmp_path / "nowhere.txt")


def test_an_empty_list_is_refused(tmp_path: Path) -> None:
    empty = tmp_path / "empty.txt"
    empty.write_text("# nothing\n")

    with pytest.raises(JarError, match=r"names no jar; write 'group:artifact:version"):
        spark_jar_list(empty)
