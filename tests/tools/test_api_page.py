"""docs/api.md has all that headrace exports, and each of its examples does what it says."""

import ast
import asyncio
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import headrace
from headrace import Bus, Producer
from headrace.testing import running_broker
from tools import api_page

ROOT = Path(__file__).parents[2]
EXAMPLES = {
    name: example
    for name in (*api_page.CLASSES, *api_page.ERRORS)
    for example in api_page.examples_in(getattr(headrace, name))
}


@pytest.fixture
def bus() -> Iterator[Bus]:
    with running_broker(num_partitions=4) as broker:
        with Producer(broker.bus) as producer:
            producer.send("orders", "half a tonne of grain")
        yield broker.bus


def run(example: str, names: dict[str, Any]) -> None:
    code = compile(example, "docs/api.md", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    if code.co_flags & inspect.CO_COROUTINE:
        asyncio.run(eval(code, names))
    else:
        exec(code, names)


def test_the_page_is_what_the_docstrings_say() -> None:
    assert (ROOT / "docs/api.md").read_text("utf-8") == api_page.render(), "run make docs"


def test_all_that_is_exported_is_on_the_page() -> None:
    shown = {*api_page.CLASSES, *api_page.ERRORS}

    assert shown >= {name for name in headrace.__all__ if name[0].isupper() and not name.isupper()}
    assert shown - {"HeadraceError", "ConfigError", "PropertyError"} == EXAMPLES.keys()


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.java, pytest.mark.timeout(600)] * (name == "Cluster"))
        for name in EXAMPLES
    ],
)
def test_an_example_runs(
    name: str, bus: Bus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    exported = {each: getattr(headrace, each) for each in headrace.__all__}

    run(EXAMPLES[name], {**exported, "bus": bus})


def test_the_first_example_runs_by_itself() -> None:
    (example,) = api_page.examples_in(headrace)

    run(example, {})


def test_no_public_method_is_without_its_line() -> None:
    for name in api_page.CLASSES:
        if name in api_page.TWINS:
            continue
        for member, value in vars(getattr(headrace, name)).items():
            if inspect.isfunction(value) or isinstance(value, property | classmethod):
                is_hidden = member.startswith("_") or member in api_page.INSIDE.get(name, ())
                assert is_hidden or f"{member}" in dict(api_page._members(name)), f"{name}.{member}"
