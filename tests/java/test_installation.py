from pathlib import Path

import pytest

from headrace.java import installation
from headrace.java.errors import JavaNotFoundError

OPENJDK_17 = 'openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime Environment (build 17)'


@pytest.fixture
def only_these(monkeypatch, tmp_path):
    """Give a machine without Java: what the test installs under this path is all there is."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(installation, "_JVM_DIRECTORY", tmp_path / "jvm")
    installation.find_java.cache_clear()
    yield tmp_path
    installation.find_java.cache_clear()


def install(home: Path, version: str) -> Path:
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    executable.chmod(0o755)
    return executable


@pytest.mark.parametrize(
    ("text", "version"),
    [
        (OPENJDK_17, 17),
        ('java version "1.8.0_292"', 8),
        ('openjdk version "25" 2025-09-16 LTS', 25),
        ('openjdk version "21-ea" 2023-09-19', 21),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "11.0.2"', 11),
        ("bash: java: not found", None),
    ],
)
def test_the_version_is_read_from_what_java_prints(text, version):
    assert installation.parse_version(text) == version


def test_java_home_comes_first(only_these, monkeypatch):
    install(only_these, "17.0.1")
    wanted = install(only_these / "home", "21.0.1")
    monkeypatch.setenv("JAVA_HOME", str(only_these / "home"))

    assert installation.find_java()[:2] == (wanted, 21)


def test_one_that_is_too_old_is_passed_over(only_these, monkeypatch):
    install(only_these / "home", "1.8.0_292")
    monkeypatch.setenv("JAVA_HOME", str(only_these / "home"))
    wanted = install(only_these / "jvm" / "java-17", "17.0.15")

    assert installation.find_java().path == wanted


def test_without_java_the_error_names_the_package(only_these, capsys):
    install(only_these / "jvm" / "java-11", "11.0.2")

    with pytest.raises(
        JavaNotFoundError, match="apt-get install openjdk-17-jre-headless"
    ) as caught:
        installation.find_java()

    assert "Java 11 at" in str(caught.value)
    assert installation.main() == 1
    assert "openjdk-17-jre-headless" in capsys.readouterr().err


def test_the_command_prints_the_path(only_these, capsys):
    wanted = install(only_these, "17.0.1")

    assert installation.main() == 0
    assert capsys.readouterr().out.strip() == str(wanted)
