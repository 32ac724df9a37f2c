"""`headrace pipeline`: what it lists and shows, and how each mistake is answered. No Spark."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.conftest import Answer
from typer.testing import CliRunner

from headrace.cli.app import app
from headrace.pipelines.running.run_state import RUNNING, RunDirectory
from headrace.process_lookup import process_of

Run = Callable[..., Answer]

HOT = '''"""Hot sensors."""
from headrace.pipelines import Console, Json, TopicSource

SOURCE = TopicSource(topics=("readings",))
DECODER = Json("sensor string not null, celsius double")
SINKS = (Console(),)


def transform(readings):
    return readings.where("celsius > 30")
'''


@pytest.fixture
def state_dir(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def pipeline(state_dir: Path) -> Run:
    """Run a command of `headrace pipeline` where no broker listens."""

    def invoke(*words: object) -> Answer:
        environment = {
            "HEADRACE_BOOTSTRAP": "127.0.0.1:1",
            "HEADRACE_STATE_DIR": str(state_dir),
            "NO_COLOR": "1",
        }
        result = CliRunner().invoke(app, ["pipeline", *map(str, words)], env=environment)
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Answer(result.exit_code, result.stdout, result.stderr)

    return invoke


@pytest.fixture
def hot(tmp_path: Path) -> Path:
    path = tmp_path / "hot.py"
    path.write_text(HOT)
    return path


def a_run(state_dir: Path, name: str, pipeline: str) -> None:
    directory = RunDirectory(state_dir, name)
    directory.begin({"pipeline": pipeline, "sinks": ["there"], "source": "topic t"}, process_of())
    partition = {"topic": "t", "partition": 0, "offset": 5, "end": 9, "lag": 4}
    progress = {"batches": 2, "rows": 1500, "rows_per_s": 7.25, "lag": 4, "dead_letters": 1}
    directory.update(RUNNING, None, {**progress, "partitions": [partition]})


def test_list_shows_what_is_shipped_and_what_runs(pipeline: Run, state_dir: Path) -> None:
    a_run(state_dir, "orders", "archive")
    a_run(state_dir, "mine", "hot")

    rows = {each["pipeline"]: each for each in pipeline("list", "--json").objects}

    assert rows["archive"]["running"] == ["orders"]
    assert rows["archive"]["origin"] == "shipped"
    assert rows["hot"]["running"] == ["mine"]
    assert {"archive", "replay", "table", "transform"} <= rows.keys()
    assert not any(each["is_broken"] for each in rows.values())
    assert "orders" in pipeline("list").stdout


def test_show_tells_what_a_pipeline_is_and_takes(pipeline: Run, hot: Path) -> None:
    shown = pipeline("show", hot)

    assert shown.lines[0] == "hot: Hot sensors."
    assert "topic readings from the oldest" in shown.stdout
    assert "sensor string" in shown.stdout
    assert f"headrace pipeline run {hot}" in shown.stdout
    (facts,) = pipeline("show", "table", "--json").objects
    assert {"schema", "key", "table"} <= {each["name"] for each in facts["options"]}


@pytest.mark.parametrize("name", ["table", "transform"])
def test_the_command_that_show_names_has_the_schema_it_needs(pipeline: Run, name: str) -> None:
    (facts,) = pipeline("show", name, "--json").objects

    assert "--option schema='sensor string not null, celsius double'" in facts["run"]


def test_status_shows_runs_and_one_with_its_partitions(pipeline: Run, state_dir: Path) -> None:
    assert "no pipeline has run yet" in pipeline("status").stderr
    a_run(state_dir, "orders", "archive")

    assert "1,500" in pipeline("status").lines[1]
    assert pipeline("status", "orders").lines[-1].split() == ["t", "0", "5", "9", "4"]
    (facts,) = pipeline("status", "orders", "--json").objects
    assert (facts["state"], facts["progress"]["rows"]) == (RUNNING, 1500)


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (("show", "archiv"), 2, "archive"),
        (("run", "archive", "--to", "console:"), 2, "--topic or --pattern"),
        (("run", "archive", "--topic", "t"), 2, "--to"),
        (("run", "archive", "--topic", "t", "--to", "lake"), 2, "parquet:PATH"),
        (("run", "archive", "--topic", "t", "--to", "console:", "--option", "x"), 2, "NAME=VALUE"),
        (("run", "archive", "--topic", "t", "--to", "console:", "--option", "x=1"), 2, "option x"),
        (("run", "archive", "--topic", "t", "--to", "console:", "--conf", "=1"), 2, "--conf =1"),
        (("run", "archive", "--topic", "t", "--to", "console:", "--conf", "x=\udcff"), 2, "UTF-8"),
        (
            ("run", "archive", "--topic", "t", "--to", "console:", "--trigger", "soon"),
            2,
            "available-now",
        ),
        (("run", "archive", "--topic", "t", "--to", "console:", "--name", "a/b"), 2, "run name"),
        (
            ("run", "archive", "--topic", "t", "--to", "console:", "--on-data-loss", "weep"),
            2,
            "go-on",
        ),
        (("run", "archive", "--topic", "t", "--to", "console:"), 1, "no broker answers"),
        (("stop", "orders"), 1, "no run is called orders"),
        (("status", "orders"), 1, "no run is called orders"),
    ],
)
def test_a_mistake_is_one_sentence(
    pipeline: Run, words: tuple[str, ...], code: int, sentence: str
) -> None:
    answer = pipeline(*words)

    assert answer.code == code, answer.stderr
    assert sentence in answer.stderr.splitlines()[-1]
    assert "Traceback" not in answer.stderr


def test_a_run_that_failed_can_be_read_in_its_status(pipeline: Run, state_dir: Path) -> None:
    pipeline("run", "archive", "--topic", "t", "--to", "console:", "--quiet")

    (facts,) = pipeline("status", "archive", "--json").objects

    assert facts["state"] == "failed"
    assert "no broker answers at 127.0.0.1:1" in facts["message"]
    told = json.loads((state_dir / "pipelines/archive/run.json").read_text())
    assert told["sinks"] == ["the console"]
