from collections.abc import Callable

import pytest
from typer.testing import CliRunner

from headrace.cli import completion
from headrace.cli.app import app
from headrace.kafka.process import free_ports

Complete = Callable[[str, str], list[str]]


@pytest.fixture
def complete(monkeypatch: pytest.MonkeyPatch) -> Complete:
    """What the shell offers for the last word of a line."""
    monkeypatch.setattr(completion, "_PATIENCE_S", 30.0)  # a busy machine is not a failure

    def ask(line: str, bootstrap: str) -> list[str]:
        environment = {
            "_HEADRACE_COMPLETE": "complete_bash",
            "COMP_WORDS": line,
            "COMP_CWORD": str(len(line.split(" ")) - 1),
            "HEADRACE_BOOTSTRAP": bootstrap,
        }
        result = CliRunner().invoke(app, [], prog_name="headrace", env=environment)
        assert result.stderr == ""
        return result.stdout.split()

    return ask


@pytest.mark.parametrize("words", ["topics describe", "topics delete x", "configs show topic"])
def test_topics_are_completed(complete: Complete, bootstrap: str, topic: str, words: str) -> None:
    assert complete(f"headrace {words} {topic[:-1]}", bootstrap) == [topic]


@pytest.mark.parametrize("words", ["groups describe", "groups delete x", "configs show group"])
def test_groups_are_completed(complete: Complete, bootstrap: str, group: str, words: str) -> None:
    assert complete(f"headrace {words} {group[:-1]}", bootstrap) == [group]


def test_internal_topics_are_completed_when_begun(
    complete: Complete, bootstrap: str, group: str
) -> None:
    assert "__consumer_offsets" not in complete("headrace topics describe ", bootstrap)
    assert complete("headrace topics describe __cons", bootstrap) == ["__consumer_offsets"]


@pytest.mark.parametrize("words", ["topics describe", "groups describe"])
def test_without_a_broker_nothing_is_completed_and_nothing_said(
    complete: Complete, words: str
) -> None:
    (port,) = free_ports(1)

    assert complete(f"headrace {words} a", f"127.0.0.1:{port}") == []
