from pathlib import Path

import pytest

from headrace.errors import EngineError
from headrace.java.jars import cache_directory
from headrace.kafka import jars
from headrace.kafka.jars import KAFKA_VERSION, find_version, kafka_jar_list, kafka_versions


def test_kafkas_own_list_is_whole():
    listed = kafka_jar_list()

    assert len(listed) == 53
    assert sum(jar.size_bytes for jar in listed) == pytest.approx(46.1e6, rel=0.01)
    assert f"kafka_2.13-{KAFKA_VERSION}.jar" in {jar.file_name for jar in listed}


@pytest.mark.parametrize("version", kafka_versions())
def test_the_list_of_every_version_has_what_a_node_needs(version):
    names = {jar.file_name for jar in kafka_jar_list(version)}

    for artifact in ("kafka_2.13", "kafka-tools", "kafka-clients"):
        assert f"{artifact}-{version}.jar" in names
    for artifact in ("log4j-core-", "log4j-slf4j-impl-", "slf4j-api-1."):
        assert [name for name in names if name.startswith(artifact)]


def test_a_version_may_leave_its_last_number_out():
    assert kafka_versions()[0] == KAFKA_VERSION
    assert find_version("4.3") == find_version("4.3.1") == "4.3.1"
    with pytest.raises(EngineError, match=r"Kafka 4\.9 is not one of .*: 4\.3\.1, 4\.2"):
        find_version("4.9")


def test_bytes_are_told_as_they_come(repository, monkeypatch, tmp_path):
    monkeypatch.setenv("HEADRACE_MAVEN_REPOSITORY", repository.url)
    monkeypatch.setenv("HEADRACE_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(jars, "kafka_jar_list", lambda _: [repository.add("one", b"first")])
    told = list[tuple[int, int]]()

    jars.kafka_jars(on_bytes=lambda done, total: told.append((done, total)))

    assert told == [(0, 5), (5, 5)]


def test_the_command_prints_the_directory(repository, monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("HEADRACE_MAVEN_REPOSITORY", repository.url)
    monkeypatch.setenv("HEADRACE_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(jars, "kafka_jar_list", lambda _: [repository.add("one", b"first")])

    assert jars.main() == 0
    assert Path(capsys.readouterr().out.strip()) == cache_directory() / "jars"


def test_the_command_fails_with_a_sentence(repository, monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("HEADRACE_MAVEN_REPOSITORY", repository.url)
    monkeypatch.setenv("HEADRACE_CACHE_DIR", str(tmp_path))
    missing = repository.add("one", b"first")._replace(artifact="gone")
    monkeypatch.setattr(jars, "kafka_jar_list", lambda _: [missing])

    assert jars.main() == 1
    assert "gone-1.0.jar" in capsys.readouterr().err
