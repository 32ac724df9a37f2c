"""Finding pipelines: by name, by path, and what is told when there is none."""

import sys
import textwrap
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from headrace.pipelines import Json, TopicSource, load_pipeline, parse_sink, registry
from headrace.pipelines.errors import PipelineDefinitionError

HOT = '''
    """Hot sensors: readings above a limit."""
    from headrace.pipelines import Json, TopicSource, parse_sink
    SOURCE = TopicSource(topics=("readings",), start="latest")
    DECODER = Json("sensor string")
    SINKS = (parse_sink("console:"),)
    def transform(rows):
        return rows
'''
WITH_OPTIONS = '''
    """Takes options."""
    from headrace.pipelines import Json, Option, Pipeline
    OPTIONS = (Option("schema", "the fields", is_required=True), Option("limit", "…", default="5"))
    def pipeline(options, source, sinks):
        return Pipeline(name="hot", summary="", source=source, decoder=Json(options["schema"]),
                        sinks=sinks, options=dict(options))
'''


def write(directory: Path, name: str, text: str) -> str:
    path = directory / name
    path.write_text(textwrap.dedent(text), "utf-8")
    return str(path)


def install(monkeypatch: pytest.MonkeyPatch, *points: tuple[str, str]) -> None:
    found = [EntryPoint(name, value, registry.GROUP) for name, value in points]
    monkeypatch.setattr(registry, "entry_points", lambda group: found)


def add_module(monkeypatch: pytest.MonkeyPatch, name: str, **members: Any) -> None:
    module = ModuleType(name, "Of another package.")
    vars(module).update(members)
    monkeypatch.setitem(sys.modules, name, module)


def test_the_shipped_pipelines_are_found_by_name() -> None:
    listed = [each for each in registry.all_pipelines() if each.origin == registry.SHIPPED]

    assert {"archive", "replay", "table", "transform"} <= {each.name for each in listed}
    assert [each.problem for each in listed if each.problem] == []
    assert registry.find("archive").summary


def test_one_is_loaded_with_a_topic_and_sinks_as_the_command_takes_them(tmp_path: Path) -> None:
    file = Path(write(tmp_path, "hot.py", HOT))

    own = load_pipeline(file)
    loaded = load_pipeline(file, source="others", sinks=["parquet:hot", *own.sinks])

    assert isinstance(own.source, TopicSource)
    assert isinstance(loaded.source, TopicSource)
    assert (own.source.topics, loaded.source.topics) == (("readings",), ("others",))
    assert loaded.source.start == "latest"
    assert loaded.sinks == (parse_sink("parquet:hot"), *own.sinks)


def test_a_file_is_a_pipeline(tmp_path: Path) -> None:
    found = registry.find(write(tmp_path, "hot.py", HOT))

    assert (found.name, found.summary) == ("hot", "Hot sensors: readings above a limit.")
    pipeline = found.build()
    assert isinstance(pipeline.source, TopicSource)
    assert pipeline.source.topics == ("readings",)
    assert isinstance(pipeline.decoder, Json)
    assert len(pipeline.sinks) == 1


def test_the_command_line_wins_over_constants(tmp_path: Path) -> None:
    found = registry.find(write(tmp_path, "hot.py", HOT))
    sink = parse_sink("console:")

    pipeline = found.build({}, TopicSource(topics=("others",)), (sink,))

    assert pipeline.source == TopicSource(topics=("others",), start="latest")
    assert pipeline.sinks[0] is sink


def test_a_files_functions_travel_by_value_to_workers(tmp_path: Path) -> None:
    from pyspark import cloudpickle

    transform = registry.find(write(tmp_path, "hot.py", HOT)).build().transform

    assert b"headrace_pipeline_hot" not in sys.modules
    restored = cloudpickle.loads(cloudpickle.dumps(transform))
    assert restored(7) == 7


def test_options_are_filled_in_and_checked(tmp_path: Path) -> None:
    found = registry.find(write(tmp_path, "hot.py", WITH_OPTIONS))
    source, sinks = TopicSource(topics=("a",)), (parse_sink("console:"),)

    assert found.build({"schema": "a int"}, source, sinks).options == {
        "schema": "a int",
        "limit": "5",
    }
    with pytest.raises(PipelineDefinitionError, match=r"needs --option schema=…: the fields"):
        found.build({}, source, sinks)
    with pytest.raises(PipelineDefinitionError, match=r"no option limt; did you mean limit\?"):
        found.build({"schema": "a int", "limt": "6"}, source, sinks)
    with pytest.raises(PipelineDefinitionError, match="no topics; name them with --topic"):
        found.build({"schema": "a int"}, None, sinks)
    with pytest.raises(PipelineDefinitionError, match="no sink; name one with --to"):
        found.build({"schema": "a int"}, source)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("def transform(:", r"hot.*line 1: invalid syntax"),
        ("x = 1\nimport nowhere", r"hot.py line 2: ModuleNotFoundError: No module named 'nowhere'"),
        ("raise SystemExit(3)", r"hot.py line 1: SystemExit: 3"),
        ("x = 1", "defines no pipeline; give it SOURCE"),
        ("SOURCE = 'readings'", "SOURCE is 'readings'; make it a TopicSource"),
        ("NAME = 'a/b'\ndef transform(rows): ...", "'a/b' is no name for a pipeline"),
        ("OPTIONS = (1,)", "OPTIONS need a function pipeline"),
    ],
)
def test_a_broken_file_is_one_sentence(tmp_path: Path, text: str, complaint: str) -> None:
    path = write(tmp_path, "hot.py", text)

    with pytest.raises(PipelineDefinitionError, match=complaint) as raised:
        registry.find(path)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("archve", r"no pipeline archve; did you mean archive\?"),
        ("zzz", "no pipeline zzz; there are archive,"),
        ("nowhere/hot.py", "there is no file nowhere/hot.py"),
    ],
)
def test_a_name_that_is_none_is_told_with_those_there_are(name: str, complaint: str) -> None:
    with pytest.raises(PipelineDefinitionError, match=complaint):
        registry.find(name)


def test_another_package_offers_a_pipeline(monkeypatch: pytest.MonkeyPatch) -> None:
    add_module(monkeypatch, "theirs", SOURCE=TopicSource(topics=("a",)))
    install(monkeypatch, ("hot", "theirs"))

    assert registry.find("hot").summary == "Of another package."
    assert "hot" in {each.name for each in registry.all_pipelines()}


def test_a_broken_package_is_listed_and_breaks_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, ("hot", "nowhere_to_be_found"))

    listed = {each.name: each for each in registry.all_pipelines()}

    assert "No module named" in str(listed["hot"].problem)
    assert listed["archive"].problem is None
    with pytest.raises(PipelineDefinitionError, match="nowhere_to_be_found"):
        registry.find("hot")


def test_of_two_with_one_name_none_is_guessed(monkeypatch: pytest.MonkeyPatch) -> None:
    add_module(monkeypatch, "theirs", SOURCE=TopicSource(topics=("a",)))
    add_module(monkeypatch, "others", SOURCE=TopicSource(topics=("b",)))
    install(monkeypatch, ("hot", "theirs"), ("hot", "others"))

    with pytest.raises(PipelineDefinitionError, match="two pipelines are called hot"):
        registry.find("hot")
    problems = [each.problem for each in registry.all_pipelines() if each.name == "hot"]
    assert all("same name" in str(problem) for problem in problems)


def test_nobody_takes_the_name_of_a_shipped_one(monkeypatch: pytest.MonkeyPatch) -> None:
    add_module(monkeypatch, "theirs", SOURCE=TopicSource(topics=("a",)))
    install(monkeypatch, ("archive", "theirs"))

    assert registry.find("archive").origin == registry.SHIPPED
    assert [bool(each.problem) for each in registry.all_pipelines() if each.name == "archive"] == [
        False,
        True,
    ]
