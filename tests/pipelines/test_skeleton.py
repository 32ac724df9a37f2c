"""The skeleton is no text about pipelines: its pipeline loads and its own test passes."""

import subprocess
import sys
from pathlib import Path

import pytest

from headrace.pipelines import registry
from headrace.pipelines.errors import PipelineDefinitionError
from headrace.pipelines.skeleton import skeleton, write_skeleton


@pytest.mark.parametrize("is_yaml", [False, True], ids=["python", "yaml"])
def test_a_new_pipeline_loads(tmp_path: Path, is_yaml: bool) -> None:
    made = skeleton("hot_sensors", tmp_path / "new", is_yaml=is_yaml)
    write_skeleton(made)

    found = registry.find(str(made.pipeline))

    assert found.name == "hot_sensors"
    assert found.build().sinks[0].describe().count("hot_sensors") >= 1


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "test_hot.py").write_text("mine")

    with pytest.raises(PipelineDefinitionError, match=r"test_hot\.py is there already"):
        write_skeleton(skeleton("hot", tmp_path, is_yaml=False))

    assert (tmp_path / "test_hot.py").read_text() == "mine"
    assert not (tmp_path / "hot.py").exists()


@pytest.mark.parametrize("name", ["Hot", "hot-sensors", "class", "", "../hot", "9"])
def test_a_name_python_cannot_import_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(PipelineDefinitionError, match="is no name for a pipeline's file"):
        skeleton(name, tmp_path, is_yaml=False)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("is_yaml", [False, True], ids=["python", "yaml"])
def test_the_new_pipelines_own_test_passes(tmp_path: Path, is_yaml: bool) -> None:
    write_skeleton(skeleton("hot_sensors", tmp_path, is_yaml=is_yaml))

    answer = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_hot_sensors.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )

    assert answer.returncode == 0, answer.stdout
    assert "2 passed" in answer.stdout
