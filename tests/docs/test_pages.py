"""Every command of README and docs runs in the order written, from an empty directory."""

import re
from pathlib import Path

import pytest
from tests.docs.pages import PYTHON, SHELL, Block, needs_kafka, needs_spark, read_blocks
from tests.docs.pip_stand_in import why_not
from tests.docs.shell import ROOT, Shell

PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
BLOCKS = {page.relative_to(ROOT).as_posix(): read_blocks(page) for page in PAGES}
# What a newcomer reads first. The others start Spark or Kafka too often for `make test`, or hold
# examples that tests/cli/test_every_command.py runs there.
QUICK = {"README.md", "docs/groups.md", "docs/testing.md"}


def cases() -> list[object]:
    """Pages with something to run: the first ones without what is slow, then all as a whole."""
    found = []
    for name, blocks in BLOCKS.items():
        run = [block for block in blocks if block.is_run]
        quick = [block for block in run if not block.is_slow]
        if quick and name in QUICK:
            found.append(_case(name, quick, is_slow=False))
        if run and (name not in QUICK or quick != run):
            found.append(_case(name, run, is_slow=True))
    return found


def _case(name: str, blocks: list[Block], *, is_slow: bool) -> object:
    marks = [pytest.mark.timeout(1800)]
    marks += [pytest.mark.spark] * needs_spark(blocks) + [pytest.mark.java] * needs_kafka(blocks)
    marks += [pytest.mark.slow] * is_slow
    return pytest.param(blocks, marks=marks, id=f"{name}, whole" if is_slow else name)


@pytest.mark.parametrize("blocks", cases())
def test_a_pages_commands_run_in_the_order_written(blocks: list[Block], tmp_path: Path) -> None:
    has_own_broker = any(re.search("^headrace serve", block.text, re.M) for block in blocks)

    code, output = Shell(tmp_path).run(blocks, is_broker_needed=not has_own_broker)

    assert code == 0, output
    assert "Traceback" not in output


def test_a_page_runs_as_well_where_no_network_can_be_made(tmp_path: Path) -> None:
    text = "seq 3 | headrace produce letters --bootstrap 127.0.0.1:9092\nheadrace topics list\n"

    code, output = Shell(tmp_path, is_own_network=False).run(
        [Block(language=SHELL, text=text, line=1)], is_broker_needed=True
    )

    assert code == 0, output
    assert re.search(r"^letters +1 +1 +3 ", output, re.M)


def test_a_command_that_fails_is_named_with_its_line(tmp_path: Path) -> None:
    block = Block(language=SHELL, text="true\nls nothing-here | cat\nfalse\n", line=7)

    code, output = Shell(tmp_path).run([block], is_broker_needed=False)

    assert code != 0
    assert "--- line 7" in output
    assert "stumbled: exit code 2" in output


@pytest.mark.parametrize("name", BLOCKS)
def test_commands_are_fenced_as_what_they_are_and_marks_are_known(name: str) -> None:
    for block in BLOCKS[name]:
        if block.language not in (SHELL, PYTHON):
            is_command = re.match(r"(?:headrace (?!ready)|pip |make |python )", block.text)
            assert not is_command, f"line {block.line} is fenced as {block.language!r}"
        for mark in block.marks:
            assert re.fullmatch(r"background|ctrl-c|slow|file \S+|skip: .+", mark), (
                f"line {block.line}"
            )


def test_every_mark_stands_before_a_block() -> None:
    for name, blocks in BLOCKS.items():
        text = (ROOT / name).read_text("utf-8")
        hidden = text.count("<!-- docs-test: before\n")
        marks = sum(len(block.marks) for block in blocks)
        assert text.count("<!-- docs-test:") == marks + hidden, name


@pytest.mark.parametrize(
    ("words", "is_fine"),
    [
        ("install .", True),
        ("install .[spark]", True),
        ("install .[sparks]", False),
        ("install headrace[spark]", False),
    ],
)
def test_only_what_can_be_installed_is_taken(words: str, is_fine: bool) -> None:
    assert (why_not(words.split()) is None) == is_fine
