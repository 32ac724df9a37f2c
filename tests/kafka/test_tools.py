import pytest

from headrace.errors import EngineError
from headrace.java.installation import find_java
from headrace.kafka.jars import KAFKA_VERSION
from headrace.kafka.tools import TOOLS, class_of, with_bootstrap


def test_the_cluster_is_named_to_a_tool_that_is_not_told_of_another():
    def told(*words):
        return with_bootstrap("topics", words, "h:1", KAFKA_VERSION)

    assert told("--list") == ["--bootstrap-server", "h:1", "--list"]
    assert told("--list", "--bootstrap-server", "x:9") == ["--list", "--bootstrap-server", "x:9"]
    assert told("--list", "--bootstrap-server=x:9") == ["--list", "--bootstrap-server=x:9"]
    assert told("--help") == ["--help"]


def test_each_tool_hears_of_the_cluster_in_its_own_way():
    assert with_bootstrap("dump-log", ["--files", "x"], "h:1", KAFKA_VERSION) == ["--files", "x"]
    assert with_bootstrap("cluster", ["cluster-id"], "h:1", KAFKA_VERSION) == [
        "cluster-id",
        "--bootstrap-server",
        "h:1",
    ]
    assert with_bootstrap("replica-verification", [], "h:1", KAFKA_VERSION)[0] == "--broker-list"
    assert with_bootstrap("producer-perf", ["--topic", "t"], "h:1", "4.1.2") == ["--topic", "t"]


@pytest.mark.java
def test_every_tool_is_in_kafkas_jars():
    find_java()

    assert {class_of(name, KAFKA_VERSION) for name in TOOLS} == {
        tool.class_name for tool in TOOLS.values()
    }


def test_a_tool_that_a_version_does_not_have_is_named(monkeypatch):
    monkeypatch.setattr("headrace.kafka.tools.kafka_jars", lambda _: [])

    with pytest.raises(EngineError, match=r"Kafka 4\.0\.2 has no tool streams-groups"):
        class_of("streams-groups", "4.0.2")
