"""What a pipeline's module may import, and that importing it stays cheap."""

import subprocess
import sys

import pytest

import headrace.pipelines


@pytest.mark.parametrize("name", headrace.pipelines.__all__)
def test_every_public_name_leads_somewhere(name: str) -> None:
    assert getattr(headrace.pipelines, name) is not None


def test_the_table_of_names_and_the_list_of_them_agree() -> None:
    assert sorted(headrace.pipelines._MODULES) == sorted(headrace.pipelines.__all__)


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="Jsn"):
        headrace.pipelines.Jsn  # noqa: B018


def test_a_definition_and_the_list_of_pipelines_need_no_spark() -> None:
    script = (
        "import sys\n"
        "from headrace.pipelines import Json, TopicSource, read_topic\n"
        "from headrace.pipelines.registry import all_pipelines\n"
        "import headrace.cli.app\n"
        "all_pipelines()\n"
        "print([name for name in sys.modules if name in ('pyspark', 'pyarrow', 'pandas')])\n"
    )
    answer = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )

    assert answer.stdout.strip() == "[]"
