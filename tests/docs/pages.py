"""A page's fenced blocks as one shell script: what a reader would paste, in the order written.

A comment before a block, which readers do not see, says what the test does with it:

    <!-- docs-test: background -->     its last command goes on until the page is done
    <!-- docs-test: ctrl-c -->         its last command goes on until the reader has seen enough
    <!-- docs-test: file NAME -->      it is the text of that file
    <!-- docs-test: slow -->           it takes minutes, and is left out of `make test`
    <!-- docs-test: skip: REASON -->   it needs what a test does not have

and one of several lines holds commands that no reader needs, such as filling a topic with what the
page takes for granted:

    <!-- docs-test: before
    seq 5 | headrace produce orders
    -->
"""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

SHELL, PYTHON = "sh", "python"
_MARK = r"<!-- docs-test: (?P<mark>[^\n]*?)\s*(?:-->|\n(?P<hidden>.*?)\n-->)\n+"
_FENCE = r"^(?P<indent> *)```(?P<language>\w*)\n(?P<text>.*?)^ *```$"
_PARTS = re.compile(rf"{_MARK}|{_FENCE}", re.MULTILINE | re.DOTALL)
# A block of tests is for pytest; any other is a program.
_IS_TESTS = re.compile(r"^def test_", re.MULTILINE)
_IS_SPARK = re.compile(r"headrace (?:pipeline (?:run|setup)|sql) |pipelines|pytest test_")
_IS_KAFKA = re.compile(r"headrace kafka (?!list)|Cluster\.create")


@dataclass(frozen=True, kw_only=True)
class Block:
    """One fenced block, or the hidden commands of a mark, and where it begins."""

    language: str
    text: str
    line: int
    marks: tuple[str, ...] = ()

    @property
    def reason_to_skip(self) -> str | None:
        """Why it is not run; None: it is."""
        for mark in self.marks:
            if mark.startswith("skip:"):
                return mark.removeprefix("skip:").strip()
        return None

    @property
    def file(self) -> str | None:
        """The file it is the text of."""
        return next((mark.split()[1] for mark in self.marks if mark.startswith("file ")), None)

    @property
    def is_slow(self) -> bool:
        return "slow" in self.marks

    @property
    def is_run(self) -> bool:
        """Whether a test does something with it."""
        is_program = self.language in (SHELL, PYTHON)
        return (is_program or self.file is not None) and self.reason_to_skip is None

    def script(self) -> str:
        """It as shell commands."""
        if self.file is not None:
            return f"mkdir -p $(dirname {self.file})\n" + _here(f"cat > {self.file}", self.text)
        if self.language == PYTHON and _IS_TESTS.search(self.text):
            name = f"test_line_{self.line}.py"
            return _here(f"cat > {name}", self.text) + f"pytest -q {name}\nrm {name}\n"
        if self.language == PYTHON:
            return _here("python -", self.text)
        if {*self.marks} & {"background", "ctrl-c"}:
            *others, last = commands(self.text)
            ending = ["end_last"] * ("ctrl-c" in self.marks)
            return "\n".join([*others, f"in_background {shlex.quote(last)}", *ending, ""])
        return self.text


def read_blocks(page: Path) -> list[Block]:
    """All blocks of a page, each with the marks right before it."""
    text = page.read_text("utf-8")
    blocks: list[Block] = []
    marks: list[str] = []
    end_of_mark = 0
    for part in _PARTS.finditer(text):
        if part.start() != end_of_mark:
            marks = []  # prose between a mark and a block: the mark is for none
        line = text.count("\n", 0, part.start()) + 1
        if part["hidden"] is not None:
            blocks.append(Block(language=SHELL, text=part["hidden"] + "\n", line=line))
            end_of_mark = part.end()
        elif part["mark"] is not None:
            marks.append(part["mark"])
            end_of_mark = part.end()
        else:
            indent = len(part["indent"])
            lines = [each[indent:] for each in part["text"].splitlines(keepends=True)]
            blocks.append(
                Block(language=part["language"], text="".join(lines), line=line, marks=tuple(marks))
            )
            marks = []
    return blocks


def commands(text: str) -> list[str]:
    """The commands of a shell block, each with its continued lines."""
    joined = re.split(r"(?<!\\)\n", text)
    return [each for each in joined if each.strip() and not each.lstrip().startswith("#")]


def needs_spark(blocks: list[Block]) -> bool:
    return any(_IS_SPARK.search(block.text) for block in blocks)


def needs_kafka(blocks: list[Block]) -> bool:
    return any(_IS_KAFKA.search(block.text) for block in blocks)


def _here(command: str, text: str) -> str:
    return f"{command} <<'END OF BLOCK'\n{text}END OF BLOCK\n"
