"""The import rule of ARCHITECTURE.md, held against every module there is."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "headrace"
MODULES = sorted(PACKAGE.rglob("*.py"))
MAX_LINES = 600  # 400 is the question which second thing crept in

LEAVES = {"errors", "config", "model", "metrics", "positions"}
# What each part may import of headrace, besides itself. A part that is not here is refused,
# so that a new folder has to find its place in this table.
ALLOWED = {
    "__init__": set[str](),
    "errors": set[str](),
    "config": {"errors"},
    "model": {"errors"},
    "metrics": set[str](),
    "positions": {"errors"},
    "settings": LEAVES,
    "records": LEAVES,
    "protocol": LEAVES | {"records"},
    "log": LEAVES | {"records"},
    "coordinators": LEAVES | {"records", "protocol"},
    "broker": LEAVES | {"settings", "records", "protocol", "log", "coordinators"},
    "client": LEAVES,
    "java": LEAVES,
    # Asks a cluster what librdkafka cannot: who is the active controller, how far replicas lag.
    "kafka": LEAVES | {"client", "java", "protocol"},
    # Any two buses, through librdkafka alone.
    "mirror": LEAVES | {"client"},
    "bmp": LEAVES | {"client"},
    "oslo": LEAVES | {"client"},
    "gateways": LEAVES | {"client"},
    "console": LEAVES | {"client"},
    # Spark's workers import it: nothing of the broker may come along.
    "pipelines": LEAVES | {"java"},
    # Measures both engines from outside, so it starts them; it never looks inside a broker.
    "bench": LEAVES
    | {"records", "protocol", "client", "java", "kafka", "mirror", "pipelines", "testing"},
}
SEES_EVERYTHING = {"cli", "testing", "pytest_plugin", "demo", "__main__"}
SANS_IO = {"records", "protocol", "coordinators"}
IO_MODULES = {"os", "socket", "asyncio", "time", "threading", "selectors", "subprocess", "uvloop"}
IO_FREE_FILES = {"settings/catalogue.py"}


def part_of(path: Path) -> str:
    relative = path.relative_to(PACKAGE)
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


def imports_in(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import"
            # `from headrace import log` imports the part, not the package.
            if node.module == "headrace":
                yield from (f"headrace.{alias.name}" for alias in node.names)
            else:
                yield node.module or ""


def headrace_parts_in(path: Path) -> set[str]:
    names = (name.split(".") for name in imports_in(path))
    parts = {words[1] for words in names if words[0] == "headrace" and len(words) > 1}
    return parts - {"__version__"}


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_point_down(path: Path) -> None:
    part = part_of(path)
    if part in SEES_EVERYTHING:
        return

    assert part in ALLOWED, f"{part} has no place in the table of layers"
    assert headrace_parts_in(path) - {part} <= ALLOWED[part]


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_layers_without_io_import_none(path: Path) -> None:
    if part_of(path) not in SANS_IO and name_of(path) not in IO_FREE_FILES:
        return

    assert not {name.split(".")[0] for name in imports_in(path)} & IO_MODULES


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_wire_types_stop_at_the_handlers(path: Path) -> None:
    # Error numbers are not wire types; the bench and kafka's questions are clients.
    names = {name for name in imports_in(path) if name.startswith("kio.schema")}

    if part_of(path) not in ("protocol", "bench", "kafka") and "handlers" not in path.parts:
        assert names <= {"kio.schema.errors"}


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_the_log_does_not_know_kafkas_error_numbers(path: Path) -> None:
    if part_of(path) in ("log", "records", "settings"):
        assert not any(name.split(".")[0] == "kio" for name in imports_in(path))


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_says_what_it_is_and_stays_short(path: Path) -> None:
    text = path.read_text("utf-8")

    assert ast.get_docstring(ast.parse(text)), f"{name_of(path)} has no docstring"
    assert len(text.splitlines()) <= MAX_LINES


def test_the_table_is_an_order() -> None:
    """No part may reach itself through others, or "down" would mean nothing."""
    for part in ALLOWED:
        reached: set[str] = set()
        pending = list(ALLOWED[part])
        while pending:
            name = pending.pop()
            if name not in reached:
                reached.add(name)
                pending += ALLOWED.get(name, set())
        assert part not in reached
