from types import SimpleNamespace
from typing import Any

import pytest

from headrace.pipelines.errors import PipelineDefinitionError
from headrace.pipelines.sinks.console import Console
from headrace.pipelines.sinks.uri import parse_sink


@pytest.mark.parametrize(("uri", "max_rows"), [("console:", 1000), ("console:20", 20)])
def test_the_console_is_a_sink(uri: str, max_rows: int) -> None:
    assert parse_sink(uri) == Console(max_rows)


@pytest.mark.parametrize(
    ("uri", "module"),
    [
        ("parquet:lake", "lake"),
        ("delta:s3a://b/lake", "lake"),
        ("topic:orders", "topic"),
        ("sqlite:a.db", "sql"),
        ("postgresql://h/db", "sql"),
        ("MARIADB://h/db", "sql"),
        ("mysql://h/db", "sql"),
    ],
)
def test_a_word_before_the_colon_finds_the_module(
    uri: str, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[tuple[str, object]]()

    def from_uri(uri: str, options: object) -> Console:
        asked.append((uri, options))
        return Console()

    def imported(name: str) -> Any:
        assert name == f"headrace.pipelines.sinks.{module}"
        return SimpleNamespace(from_uri=from_uri)

    monkeypatch.setattr("importlib.import_module", imported)

    parse_sink(uri, {"key": "id"})

    assert asked == [(uri, {"key": "id"})]


@pytest.mark.parametrize(
    ("uri", "sentence"),
    [
        ("lake", "does not say what it is; write parquet:PATH"),
        ("parqet:lake", r"no sink is called parqet:; did you mean parquet:\?"),
        ("oracle://me:secret@h/db", "no sink is called oracle:; write parquet:PATH"),
        ("console:many", "console:20 for the first twenty"),
    ],
)
def test_what_is_no_sink_is_refused_without_its_password(uri: str, sentence: str) -> None:
    with pytest.raises(PipelineDefinitionError, match=sentence) as raised:
        parse_sink(uri)

    assert "secret" not in str(raised.value)
