from pathlib import Path

import pytest

from headrace.pipelines.spark import settings
from headrace.pipelines.spark.settings import (
    MEMORY_LEAST_MIB,
    MEMORY_MOST_MIB,
    address_towards,
    driver_memory_mib,
    full_master,
    session_settings,
)

LOG = Path("/var/log/spark.log")
OPTIONS = "spark.driver.extraJavaOptions"


@pytest.fixture(autouse=True)
def jars(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Path]:
    """Two jars, no archive, a cache of the test's own: nothing is fetched."""
    monkeypatch.setenv("HEADRACE_CACHE_DIR", str(tmp_path))
    paths = [Path("/jars/a.jar"), Path("/jars/b.jar")]
    monkeypatch.setattr(settings, "spark_jars", lambda: paths)
    monkeypatch.setattr(settings, "archive_path", lambda jars, version: tmp_path / "spark.jsa")
    return paths


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ("local", "local[1,4]"),
        ("local[8]", "local[8,4]"),
        ("local[*]", "local[*,4]"),
        ("local[2,1]", "local[2,1]"),
        ("spark://host:7077", "spark://host:7077"),
        ("yarn", "yarn"),
    ],
)
def test_a_local_master_tries_tasks_again_unless_it_says_otherwise(given: str, used: str) -> None:
    assert full_master(given) == used


def test_what_the_user_sets_wins() -> None:
    conf = {"spark.driver.memory": "7g", "spark.sql.session.timeZone": "CET"}

    found = session_settings("x", "local[3]", conf, log_file=LOG)

    assert found["spark.driver.memory"] == "7g"
    assert found["spark.sql.session.timeZone"] == "CET"
    assert found["spark.sql.shuffle.partitions"] == "3"


def test_a_master_among_the_settings_is_the_master() -> None:
    found = session_settings("x", "local[2]", {"spark.master": "local[5]"}, log_file=LOG)

    assert found["spark.master"] == "local[5,4]"
    assert found["spark.sql.shuffle.partitions"] == "5"


def test_a_jar_of_the_user_s_does_not_take_the_connector_away() -> None:
    conf = {"spark.driver.extraClassPath": "/mine.jar", OPTIONS: "-Dmine=1"}

    found = session_settings("x", "local", conf, log_file=LOG)

    assert found["spark.driver.extraClassPath"] == "/jars/a.jar:/jars/b.jar:/mine.jar"
    assert found[OPTIONS].endswith(" -Dmine=1")
    assert f"-Dheadrace.log={LOG}" in found[OPTIONS]


def test_the_archive_is_used_once_it_is_there(tmp_path: Path) -> None:
    before = session_settings("x", "local", {}, log_file=LOG)[OPTIONS]
    (tmp_path / "spark.jsa").touch()
    after = session_settings("x", "local", {}, log_file=LOG)[OPTIONS]
    training = {OPTIONS: "-XX:ArchiveClassesAtExit=/new.jsa"}
    making = session_settings("x", "local", training, log_file=LOG)[OPTIONS]

    assert "SharedArchiveFile" not in before
    assert f"-XX:SharedArchiveFile={tmp_path / 'spark.jsa'}" in after
    assert "SharedArchiveFile" not in making


def test_a_quick_session_leaves_the_collector_to_the_user() -> None:
    ours = session_settings("x", "local", {}, log_file=LOG, is_quick=True)
    theirs = session_settings("x", "local", {OPTIONS: "-XX:+UseZGC"}, log_file=LOG, is_quick=True)

    assert "-XX:+UseSerialGC" in ours[OPTIONS]
    assert "-XX:+UseSerialGC" not in theirs[OPTIONS]


def test_a_path_with_a_space_stays_one_option() -> None:
    found = session_settings("x", "local", {}, log_file=Path("/my logs/spark.log"))

    assert '"-Dheadrace.log=/my logs/spark.log"' in found[OPTIONS]


def test_a_cluster_gets_our_jars_our_code_and_the_way_back() -> None:
    found = session_settings("x", "spark://127.0.0.1:7077", {}, log_file=LOG)

    assert found["spark.jars"] == "/jars/a.jar,/jars/b.jar"
    assert Path(found["spark.submit.pyFiles"]).name.startswith("headrace-")
    assert found["spark.driver.host"] == "127.0.0.1"
    assert found["spark.executorEnv.PYTHONSAFEPATH"] == "1"


@pytest.mark.parametrize("master", ["yarn", "k8s://https://127.0.0.1:6443", "spark://"])
def test_no_address_is_made_up(master: str) -> None:
    assert address_towards(master) is None


def test_memory_stays_within_its_bounds() -> None:
    assert MEMORY_LEAST_MIB <= driver_memory_mib() <= MEMORY_MOST_MIB
