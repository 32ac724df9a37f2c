"""The documents say what is there, and all of it."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from headrace.cli.app import app
from headrace.cli.connection import SHARED_OPTIONS
from headrace.settings.own import OTHER_VARIABLES, OWN_SETTINGS
from tools import settings_page

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
MARKDOWN = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def read(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def commands() -> Iterator[tuple[str, typer.core.TyperCommand]]:
    """Every command that does something, with the words that call it."""
    pending = [("headrace", typer.main.get_command(app))]
    while pending:
        name, command = pending.pop()
        if isinstance(command, typer.core.TyperGroup):
            pending += [(f"{name} {word}", each) for word, each in command.commands.items()]
        elif isinstance(command, typer.core.TyperCommand):
            yield name, command


COMMANDS = dict(commands())


def requirement_names() -> set[str]:
    project = PYPROJECT["project"]
    listed = [*project["dependencies"]]
    for requirements in project["optional-dependencies"].values():
        listed += requirements
    names = {re.split(r"[\s\[<>=~!;]", requirement, maxsplit=1)[0] for requirement in listed}
    return names - {"headrace"}


def test_the_readme_names_both_commands() -> None:
    assert "make demo" in read("README.md")
    assert "make test" in read("README.md")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_has_help_an_example_and_a_docs_entry(name: str) -> None:
    command = COMMANDS[name]

    assert command.help
    assert command.epilog is not None
    assert command.epilog.startswith("Example: ")
    assert name in command.epilog
    assert f"## {name}\n" in read("docs/cli.md")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_help_and_is_in_the_docs(name: str) -> None:
    section = read("docs/cli.md").split(f"## {name}\n")[1].split("\n## ")[0]
    for parameter in COMMANDS[name].params:
        assert getattr(parameter, "help", None), f"{name}: {parameter.name} has no help"
        if parameter.param_type_name == "option" and parameter.opts[0] not in SHARED_OPTIONS:
            assert re.search(rf"`{re.escape(parameter.opts[0])}[` ]", section), parameter.opts[0]


@pytest.mark.parametrize("option", SHARED_OPTIONS)
def test_the_options_all_commands_share_are_in_the_docs_once(option: str) -> None:
    section = read("docs/cli.md").split("## Connection options\n")[1].split("\n## ")[0]

    assert f"| `{option}` |" in section


@pytest.mark.parametrize("name", sorted(requirement_names()))
def test_every_dependency_has_its_reason(name: str) -> None:
    assert re.search(rf"[| ,]{re.escape(name)}[ ,|]", read("docs/dependencies.md"))


def test_the_page_of_settings_is_what_the_broker_goes_by() -> None:
    assert read("docs/settings.md") == settings_page.render(), "run make docs"


@pytest.mark.parametrize("name", [own.name for own in OWN_SETTINGS])
def test_every_own_setting_is_in_the_docs(name: str) -> None:
    assert f"| `{name}` |" in read("docs/settings.md")


@pytest.mark.parametrize("name", sorted(OTHER_VARIABLES))
def test_every_other_variable_is_in_the_docs(name: str) -> None:
    assert f"| `{name}` |" in read("docs/settings.md")


@pytest.mark.parametrize("path", MARKDOWN, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_link_leads_nowhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)", path.read_text("utf-8")):
        if "://" not in target:
            assert (path.parent / target).exists(), f"{path.name} links to {target}"


def test_every_target_in_the_makefile_that_has_help_is_real() -> None:
    makefile = read("Makefile")
    for target in ("test", "demo", "bench", "bench-quick", "test-all", "check", "clean"):
        assert re.search(rf"^{target}:.*## \S", makefile, re.MULTILINE)


def test_no_document_names_a_place_on_somebodys_machine() -> None:
    for path in [*MARKDOWN, ROOT / "Makefile"]:
        assert not re.search(r"/(root|work|home/\w+)/", path.read_text("utf-8")), path.name


def test_every_file_that_the_map_names_is_there() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    named = set(re.findall(r"(?<![\w/.*<>])[\w/]+\.py\b", text))
    parts = ("src/headrace", "bench", "demo", "tools", "tests")
    there = [path.relative_to(ROOT) for part in parts for path in (ROOT / part).rglob("*.py")]

    assert [name for name in sorted(named) if not any(path.match(name) for path in there)] == []
