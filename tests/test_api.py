"""What a person imports from headrace: these names, each when it is used, and no others."""

import ast
import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.docs.pages import PYTHON, read_blocks

import headrace
from headrace import Admin, AsyncAdmin, AsyncConsumer, AsyncProducer, Consumer, Producer
from tools.api_page import INSIDE

ROOT = Path(__file__).parents[1]
# What documents may tell a reader to import, with `import` or `from`.
PUBLIC = {"headrace", "headrace.kafka.drill", "headrace.pipelines", "headrace.testing"}
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def loaded_after(program: str) -> set[str]:
    program += "\nimport sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    return {*done.stdout.decode().split()}


def test_importing_headrace_loads_nothing_else() -> None:
    assert loaded_after("import headrace; dir(headrace)") - loaded_after("") == {"headrace"}


def test_a_client_brings_neither_a_broker_nor_spark() -> None:
    loaded = loaded_after("from headrace import Admin, AsyncConsumer, Bus, Consumer, Producer")

    assert not any(name.startswith(("headrace.broker", "headrace.log")) for name in loaded)
    assert not loaded & {"confluent_kafka", "kio", "pyspark", "uvloop"}


def test_each_name_is_there_and_no_other_is_listed() -> None:
    assert dir(headrace) == sorted(headrace.__all__)
    assert len({*headrace.__all__}) == len(headrace.__all__)
    for name in headrace.__all__:
        assert getattr(headrace, name) is not None
    with pytest.raises(AttributeError, match="module 'headrace' has no attribute 'Brocker'"):
        _ = headrace.Brocker  # type: ignore[attr-defined]


def test_what_type_checkers_see_is_what_is_loaded() -> None:
    tree = ast.parse(Path(inspect.getfile(headrace)).read_text("utf-8"))
    seen = {
        alias.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("headrace.")
        for alias in node.names
    }

    assert seen == headrace._MODULES
    packages = {"headrace.pipelines", "headrace.testing"}
    assert packages == {f"headrace.{name}" for name in headrace._PACKAGES}
    assert {*seen, *headrace._PACKAGES, "__version__"} == {*headrace.__all__}


def public_names(client: type) -> set[str]:
    return {name for name in vars(client) if not name.startswith("_")}


@pytest.mark.parametrize(
    ("client", "twin"),
    [(Admin, AsyncAdmin), (Producer, AsyncProducer), (Consumer, AsyncConsumer)],
)
def test_a_twin_has_each_method_with_the_same_arguments(client: type, twin: type) -> None:
    assert public_names(client) - INSIDE[client.__name__] - public_names(twin) == set()
    for name in public_names(twin) & public_names(client):
        ours, theirs = getattr(twin, name), getattr(client, name)
        if callable(ours):
            assert [*inspect.signature(ours).parameters.values()][1:] == [
                *inspect.signature(theirs).parameters.values()
            ][1:], name


def imports_of(text: str) -> set[str]:
    found = set[str]()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    return {name for name in found if name.split(".")[0] == "headrace"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_no_page_tells_a_reader_to_import_what_is_inside(page: Path) -> None:
    for block in read_blocks(page):
        if block.language == PYTHON:
            assert imports_of(block.text) <= PUBLIC, f"line {block.line}"
        else:
            told = re.findall(r"(?:from|import) (headrace[\w.]*)", block.text)
            assert {*told} <= PUBLIC, f"line {block.line}"


def test_the_public_packages_say_what_they_have() -> None:
    for name in PUBLIC:
        package = importlib.import_module(name)
        assert all(hasattr(package, each) for each in package.__all__)
