import sys

import pytest
from jgo.constants import MAVEN_CENTRAL_URL

from headrace.java.errors import JarError
from headrace.java.repository import repository_url

SETTINGS = """<settings xmlns="http://maven.apache.org/SETTINGS/1.2.0"><mirrors>
<mirror><id>m</id><mirrorOf>{of}</mirrorOf><url>http://127.0.0.1/mirror</url>{more}</mirror>
</mirrors></settings>"""


@pytest.fixture(autouse=True)
def no_repository_in_the_environment(monkeypatch):
    monkeypatch.delenv("HEADRACE_MAVEN_REPOSITORY", raising=False)


def test_mavens_default_is_used_when_nothing_else_is_said(tmp_path):
    assert repository_url(tmp_path / "settings.xml") == MAVEN_CENTRAL_URL


def test_without_jgo_the_sentence_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "jgo.constants", None)

    with pytest.raises(JarError, match="HEADRACE_MAVEN_REPOSITORY"):
        repository_url(tmp_path / "settings.xml")


def test_the_environment_wins_over_mavens_settings(tmp_path, monkeypatch):
    monkeypatch.setenv("HEADRACE_MAVEN_REPOSITORY", "http://127.0.0.1/mine")
    (tmp_path / "settings.xml").write_text(SETTINGS.format(of="central", more=""))

    assert repository_url(tmp_path / "settings.xml") == "http://127.0.0.1/mine"


@pytest.mark.parametrize("of", ["central", "*", "external:*", "other, central", "*,!other"])
def test_a_mirror_of_central_is_used(tmp_path, of):
    (tmp_path / "settings.xml").write_text(SETTINGS.format(of=of, more=""))

    assert repository_url(tmp_path / "settings.xml") == "http://127.0.0.1/mirror"


@pytest.mark.parametrize(
    ("of", "more"),
    [("other", ""), ("*,!central", ""), ("external:http:*", ""), ("*", "<blocked>true</blocked>")],
)
def test_a_mirror_of_something_else_is_not(tmp_path, of, more):
    (tmp_path / "settings.xml").write_text(SETTINGS.format(of=of, more=more))

    assert repository_url(tmp_path / "settings.xml") == MAVEN_CENTRAL_URL


def test_settings_that_are_not_xml_are_named(tmp_path):
    (tmp_path / "settings.xml").write_text("<settings>")

    with pytest.raises(JarError, match=r"settings\.xml"):
        repository_url(tmp_path / "settings.xml")
