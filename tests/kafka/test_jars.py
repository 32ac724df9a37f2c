from pathlib import Path

import pytest

from headrace.java.jars import cache_directory
from headrace.kafka import jars
from headrace.kafka.jars import KAFKA_VERSION, kafka_jar_list


def test_kafkas_own_list_is_whole():
    listed = kafka_jar_list()

    assert len(listed) == 53
    assert sum(jar.size_bytes for jar in listed) == pytest.approx(46.1e6, rel=0.01)
    assert f"kafka_2.13-{KAFKA_VERSION}.jar" in {jar.file_name for jar in listed}


def test_the_command_prints_the_directory(repository, monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("HEADRACE_MAVEN_REPOSITORY", repository.url)
    monkeypatch.setenv("HEADRACE_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(jars, "kafka_jar_list", lambda: [repository.add("one", b"first")])

    assert jars.main() == 0
    assert Path(capsys.readouterr().out.strip()) == cache_directory() / "jars"


def test_the_command_fails_with_a_sentence(repository, monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("HEADRACE_MAVEN_REPOSITORY", repository.url)
    monkeypatch.setenv("HEADRACE_CACHE_DIR", str(tmp_path))
    missing = repository.add("one", b"first")._replace(artifact="gone")
    monkeypatch.setattr(jars, "kafka_jar_list", lambda: [missing])

    assert jars.main() == 1
    assert "gone-1.0.jar" in capsys.readouterr().err
