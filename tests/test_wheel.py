"""What setuptools would put into the wheel, by the table it goes by; nothing is built."""

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

from setuptools import find_namespace_packages

ROOT = Path(__file__).parents[1]
SETUPTOOLS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]
TESTING = ROOT / "src" / "headrace" / "testing"


def shipped_packages() -> set[str]:
    """Those with modules: nothing goes of a folder that git left behind with its byte code."""
    (where,) = SETUPTOOLS["packages"]["find"]["where"]
    return {
        name
        # From a pyproject.toml setuptools takes folders without `__init__.py`, too.
        for name in find_namespace_packages(str(ROOT / where))
        if any(Path(ROOT, where, *name.split(".")).glob("*.py"))
    }


def test_the_wheel_has_one_package() -> None:
    packages = shipped_packages()

    assert {name.partition(".")[0] for name in packages} == {"headrace"}
    assert {"headrace.broker.handlers", "headrace.cli", "headrace.testing"} <= packages
    assert "py-modules" not in SETUPTOOLS


def test_neither_the_workshop_nor_tests_are_in_the_wheel() -> None:
    second_words = {name.split(".")[1] for name in shipped_packages() if "." in name}

    assert not second_words & {"bench", "demo", "tools", "tests"}


def test_what_the_wheel_has_for_tests_is_what_users_import() -> None:
    """A helper of our own tests lives in tests/ or tools/, where users do not get it."""
    needed, pending = set[str](), ["__init__"]
    while pending:
        name = pending.pop()
        if name not in needed:
            needed.add(name)
            pending += modules_of_testing_in(TESTING / f"{name}.py")

    assert {path.stem for path in TESTING.rglob("*.py")} == needed


def modules_of_testing_in(path: Path) -> Iterator[str]:
    package = "headrace.testing"
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module == package:
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"{package}."):
            yield (node.module or "").removeprefix(f"{package}.")
