"""docs/engines.md says what the tests say: every difference, and every promise with its file."""

import re
from pathlib import Path

from tests.contracts.differences import DIFFERENCES

TESTS = Path(__file__).parent
PAGE = (TESTS.parents[1] / "docs" / "engines.md").read_text("utf-8")


def section(heading: str) -> str:
    return PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]


def test_the_page_lists_the_declared_differences_and_no_others() -> None:
    rows = re.findall(r"^\| .* \|$", section("Where they differ"), re.MULTILINE)

    assert rows[1:] == [difference.row() for difference in DIFFERENCES]


def test_the_page_names_every_file_of_the_suite() -> None:
    named = set(re.findall(r"`(test_\w+\.py)`", section("What both promise")))

    assert named == {path.name for path in TESTS.glob("test_*.py")} - {Path(__file__).name}


def test_every_difference_that_a_test_relies_on_is_declared() -> None:
    used = {
        title
        for path in TESTS.glob("test_*.py")
        for title in re.findall(r'mark\.differs\("([^"]+)"\)', path.read_text("utf-8"))
    }

    assert used
    assert used <= {difference.title for difference in DIFFERENCES}
