"""docs/cluster.md and its pages name only what is there: files, headings, tools."""

import re
from pathlib import Path

import pytest
from tests.deploy.deployment import DEPLOY

from headrace.kafka.tools import TOOLS

ROOT = DEPLOY.parent
PAGES = [ROOT / "docs" / "cluster.md", *sorted((ROOT / "docs" / "cluster").glob("*.md"))]


def anchors(page: Path) -> set[str]:
    """The anchors GitHub makes of a page's headings."""
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.M)
    return {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)\s]+)\)", page.read_text("utf-8"))
    local = [link.partition("#") for link in links if "://" not in link]
    dead = [
        f"{name}#{anchor}"
        for name, _, anchor in local
        if not (target := page.parent / name if name else page).exists()
        or (anchor and anchor not in anchors(target))
    ]

    assert local
    assert dead == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_tool_is_one_that_headrace_runs(page: Path) -> None:
    named = re.findall(r"kafka tool ([a-z][a-z-]+)", page.read_text("utf-8"))

    assert {*named} - TOOLS.keys() == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_file_of_deploy_that_is_named_exists(page: Path) -> None:
    named = {each.rstrip("/.") for each in re.findall(r"deploy/[\w./*-]+", page.read_text("utf-8"))}

    assert [each for each in sorted(named) if not list(ROOT.glob(each))] == []


def test_every_file_of_deploy_is_in_the_guide() -> None:
    guide = "".join(page.read_text("utf-8") for page in PAGES)
    folders = {path.name for path in DEPLOY.iterdir() if path.is_dir()}

    assert {each for each in folders if f"deploy/{each}" not in guide} == set()
