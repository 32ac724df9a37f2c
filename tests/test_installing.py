import re
import subprocess
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from headrace.installing import how_to_install

ROOT = Path(__file__).parents[1]
# `headrace` from an index, with or without extras; nothing of that name is ours there.
_FROM_AN_INDEX = re.compile(r"pip install\s+(?:-\w+\s+)*'?headrace\b")


def test_a_checkout_and_the_package_by_its_name_are_both_named() -> None:
    assert how_to_install("spark", "psycopg") == (
        "pip install '.[spark]' in a checkout of headrace, or pip install 'psycopg[binary]>=3.2'"
    )


def test_an_extra_as_a_whole_names_all_its_packages() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    said = how_to_install("spark").partition(", or pip install ")[2]

    assert len(re.findall("'[^']+'", said)) == len(project["optional-dependencies"]["spark"])
    assert "'pyspark==4.2.0'" in said


def test_without_metadata_the_checkout_is_named_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> list[str]:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "requires", absent)

    assert how_to_install("bench") == "pip install '.[bench]' in a checkout of headrace"


def test_nothing_tells_to_install_headrace_from_an_index() -> None:
    places = ["src", "bench", "demo", "tools", "docs", "deploy", "README.md", "CONTRIBUTING.md"]
    listed = ["git", "ls-files", *places]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    told = [
        name
        for name in names.splitlines()
        if name.endswith((".py", ".md", ".yaml", ".sh", ".service"))
        and _FROM_AN_INDEX.search((ROOT / name).read_text("utf-8"))
    ]

    assert told == []
