"""Properties as somebody wrote them: Java's file syntax, each value with the place it stands at."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from headrace.errors import InvalidConfigError

_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_BLANK = " \t\f"


class Assignment(NamedTuple):
    """One setting as somebody wrote it, and where."""

    name: str
    value: str
    source: str


def read_properties(path: Path) -> list[Assignment]:
    """Read a file in the syntax of java.util.Properties; of a name twice the last one counts."""
    data = path.read_bytes()
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = data.decode("latin-1")  # what Java takes every file for
    return list(parse_properties(text, str(path)))


def parse_properties(text: str, file_name: str) -> Iterator[Assignment]:
    """Yield the assignments of a properties text."""
    for number, line in _logical_lines(text):
        key, value = _split(line)
        source = f"{file_name}:{number}"
        yield Assignment(_unescape(key, source), _unescape(value, source), source)


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield (number of its first line, line) with continuations joined and comments left out."""
    start, parts = 0, list[str]()
    # Not splitlines(): to Java only these end a line.
    for number, line in enumerate(re.split(r"\r\n|\n|\r", text), 1):
        stripped = line.lstrip(_BLANK)
        if not parts:
            if not stripped or stripped[0] in "#!":
                continue
            start = number
        backslashes = len(stripped) - len(stripped.rstrip("\\"))
        if backslashes % 2:
            parts.append(stripped[:-1])
            continue
        yield start, "".join([*parts, stripped])
        parts = []
    if any(parts):
        yield start, "".join(parts)


def _split(line: str) -> tuple[str, str]:
    """Split at the first separator that is not escaped: `=`, `:` or blanks, with blanks around."""
    position = 0
    while position < len(line) and line[position] not in "=:" + _BLANK:
        position += 2 if line[position] == "\\" else 1
    rest = line[position:].lstrip(_BLANK)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_BLANK)
    return line[:position], rest


def _unescape(text: str, source: str) -> str:
    def replacement(match: re.Match[str]) -> str:
        code = match[1]
        if code[0] == "u":
            if len(code) == 1:
                raise InvalidConfigError(
                    text, text, "write \\u with four hexadecimal digits", source=source
                )
            return chr(int(code[1:], 16))
        return _CONTROL.get(code, code)

    unescaped = _ESCAPE.sub(replacement, text)
    # Java writes a character beyond U+FFFF as two escapes.
    return unescaped.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
