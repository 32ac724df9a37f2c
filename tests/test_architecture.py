"""The import rule of ARCHITECTURE.md, held against every module there is."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "headrace"
# Beside the package and not in the wheel: the package works without it.
WORKSHOP = ("bench", "demo", "tools")
MODULES = [
    *sorted(PACKAGE.rglob("*.py")),
    *(path for name in WORKSHOP for path in sorted((ROOT / name).rglob("*.py"))),
]
MAX_LINES = 600  # 400 is the question which second thing crept in

LEAVES = {
    *("errors", "config", "model", "metrics", "patience", "properties"),
    *("file_lock", "installing", "process_lookup"),
}
# What each part may import of headrace and of the workshop, besides itself. A part that is not
# here is refused, so that a new folder has to find its place in this table.
ALLOWED = {
    "errors": set[str](),
    "config": {"errors"},
    "model": {"errors"},
    "metrics": set[str](),
    "patience": set[str](),
    "properties": {"errors"},
    "file_lock": {"patience"},
    "installing": set[str](),
    "process_lookup": {"patience"},
    "settings": LEAVES,
    "records": LEAVES,
    "protocol": LEAVES | {"records"},
    "log": LEAVES | {"records"},
    "coordinators": LEAVES | {"records", "protocol"},
    "broker": LEAVES | {"settings", "records", "protocol", "log", "coordinators"},
    "client": LEAVES,
    # The broker as a client's process has it.
    "embedded": LEAVES | {"settings", "broker", "client"},
    "java": LEAVES,
    "kafka": LEAVES | {"client", "java"},
    # Any two buses, through librdkafka alone.
    "mirror": LEAVES | {"client"},
    # Spark's workers import it: nothing of the broker may come along.
    "pipelines": LEAVES | {"client", "java"},
    # Measures both engines from outside, so it starts them; it never looks inside a broker.
    "bench": LEAVES
    | {"records", "protocol", "client", "java", "kafka", "mirror", "pipelines", "testing", "tools"},
}
# Everything of headrace; nothing of the workshop but itself.
SEES_EVERYTHING = {"__init__", "cli", "testing", "pytest_plugin", "demo", "tools", "__main__"}
SANS_IO = {"records", "protocol", "coordinators"}
IO_MODULES = {"os", "socket", "asyncio", "time", "threading", "selectors", "subprocess", "uvloop"}
IO_FREE_FILES = {"settings/catalogue.py"}


def part_of(path: Path) -> str:
    relative = path.relative_to(PACKAGE if path.is_relative_to(PACKAGE) else ROOT)
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


def workshop_parts_in(path: Path) -> set[str]:
    return {name.split(".")[0] for name in imports_in(path)} & {*WORKSHOP}


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE if path.is_relative_to(PACKAGE) else ROOT).as_posix()


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_point_down(path: Path) -> None:
    part = part_of(path)
    if part in SEES_EVERYTHING:
        return

    assert part in ALLOWED, f"{part} has no place in the table of layers"
    assert headrace_parts_in(path) - {part} <= ALLOWED[part]


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_nothing_needs_the_workshop_but_itself(path: Path) -> None:
    part = part_of(path)
    others = workshop_parts_in(path) - {part}

    assert others <= (ALLOWED.get(part, set()) if part in WORKSHOP else set())
    assert "tests" not in {name.split(".")[0] for name in imports_in(path)}


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_layers_without_io_import_none(path: Path) -> None:
    if part_of(path) not in SANS_IO and name_of(path) not in IO_FREE_FILES:
        return

    assert not {name.split(".")[0] for name in imports_in(path)} & IO_MODULES


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_wire_types_stop_at_the_handlers(path: Path) -> None:
    # Error numbers are not wire types; the bench and what asks a cluster are clients.
    names = {name for name in imports_in(path) if name.startswith("kio.schema")}

    askers = {f"client/{name}.py" for name in ("wire", "broker_questions", "cluster_questions")}
    is_excused = name_of(path) in askers or "handlers" in path.parts
    if part_of(path) not in ("protocol", "bench") and not is_excused:
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


def modules_in(part: str) -> dict[str, Path]:
    """The modules of a part by their full names; a package stands for its `__init__.py`."""
    found = {}
    for path in MODULES:
        if part_of(path) == part:
            words = tuple(name_of(path).removesuffix(".py").split("/"))
            if path.is_relative_to(PACKAGE):
                words = ("headrace", *words)
            found[".".join(words[:-1] if words[-1] == "__init__" else words)] = path
    return found


def imported_modules(path: Path, modules: dict[str, Path]) -> set[str]:
    """Which of `modules` a file imports, wherever in it and under `TYPE_CHECKING` too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            # `from headrace.log import checkpoints` imports a module, other names come from one.
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                found.add(name if name in modules else node.module or "")
    return found & modules.keys()


def cycles_in(part: str) -> list[list[str]]:
    """The sets of modules that reach each other, and themselves, by imports."""
    modules = modules_in(part)
    imports = {name: imported_modules(path, modules) for name, path in modules.items()}
    reached = {}
    for name in modules:
        found: set[str] = set()
        pending = set(imports[name])
        while pending:
            found |= pending
            pending = set().union(*(imports[one] for one in pending)) - found
        reached[name] = found
    in_circles = [name for name in modules if name in reached[name]]
    circles = {
        frozenset(one for one in in_circles if one in reached[name] and name in reached[one])
        for name in in_circles
    }
    return sorted(sorted(circle) for circle in circles)


@pytest.mark.parametrize("part", sorted({part_of(path) for path in MODULES}))
def test_modules_of_a_part_do_not_import_in_a_circle(part: str) -> None:
    """Modules that need each other are one thing cut in pieces, or have a third one inside."""
    assert cycles_in(part) == []


def test_nothing_but_the_client_knows_librdkafka() -> None:
    importing = {
        part_of(path)
        for path in MODULES
        if any(name.split(".")[0] == "confluent_kafka" for name in imports_in(path))
    }

    assert importing == {"client"}


def test_no_two_classes_share_a_name() -> None:
    """Those a module keeps to itself may: nobody meets them anywhere else."""
    counts = Counter(
        node.name
        for path in PACKAGE.rglob("*.py")
        for node in ast.parse(path.read_text("utf-8")).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )

    assert [name for name, count in counts.items() if count > 1] == []


def test_every_part_in_the_tables_is_there() -> None:
    there = {part_of(path) for path in MODULES}
    named = ALLOWED.keys() | SEES_EVERYTHING | LEAVES | SANS_IO
    named = named.union(*ALLOWED.values())

    assert named <= there
    assert {PACKAGE / name for name in IO_FREE_FILES} <= {*MODULES}


# Who still waits in a loop of its own. It only gets shorter.
STILL_SLEEPS = {"cli", "pipelines"}


def test_one_module_locks_files_and_one_waits() -> None:
    """`file_lock.py` and `patience.py`; a sleep of no time only lets other threads run."""
    locking = {part_of(path) for path in MODULES if "fcntl" in imports_in(path)}
    sleeping = {
        part_of(path)
        for path in MODULES
        if part_of(path) not in WORKSHOP
        and re.search(r"\btime\.sleep\((?!0\))", path.read_text("utf-8"))
    }

    assert locking == {"file_lock"}
    assert sleeping - {"patience"} <= STILL_SLEEPS


def test_what_is_in_the_roots_errors_is_raised_by_several() -> None:
    """All others are in the `errors.py` of the package that raises them."""
    named = Counter(
        name
        for part in {part_of(path) for path in MODULES}
        for name in {
            alias.name
            for path in MODULES
            if part_of(path) == part
            for node in ast.walk(ast.parse(path.read_text("utf-8")))
            if isinstance(node, ast.ImportFrom) and node.module == "headrace.errors"
            for alias in node.names
        }
    )
    shared = {
        node.name
        for node in ast.parse((PACKAGE / "errors.py").read_text("utf-8")).body
        if isinstance(node, ast.ClassDef)
    }

    assert {name for name in shared if named[name] < 2} == set()
