"""The places a static setting comes from: a properties file, the environment, the command line.

Each value carries its source, so that an error can name the line or the variable to mend.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from headrace.errors import InvalidConfigError, UnknownSettingError
from headrace.settings.catalogue import BROKER
from headrace.settings.own import OTHER_VARIABLES, PREFIX

VARIABLE_PREFIX = "HEADRACE_"

_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_BLANK = " \t\f"


class Assignment(NamedTuple):
    """One setting as somebody wrote it, and where."""

    name: str
    value: str
    source: str


def variable_name(setting_name: str) -> str:
    """Return the environment variable of a setting: HEADRACE_LOG_DIRS for log.dirs."""
    return VARIABLE_PREFIX + setting_name.removeprefix(PREFIX).replace(".", "_").upper()


VARIABLES = {variable_name(name): name for name in BROKER}


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


def read_environment(environment: Mapping[str, str]) -> list[Assignment]:
    """Return the settings in the HEADRACE_ variables; raises UnknownSettingError on any other."""
    assignments = []
    for variable, value in environment.items():
        if not variable.startswith(VARIABLE_PREFIX) or variable in OTHER_VARIABLES:
            continue
        if variable not in VARIABLES:
            raise UnknownSettingError(
                variable, source="environment", suggestion=nearest(variable, VARIABLES)
            )
        assignments.append(Assignment(VARIABLES[variable], value, variable))
    return assignments


def read_command_line(overrides: Mapping[str, str]) -> list[Assignment]:
    """Return what `--set` or a caller in the same process says."""
    return [Assignment(name, value, f"--set {name}") for name, value in overrides.items()]


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that was probably meant."""
    import difflib  # here because it is slow to import and only an error needs it

    return next(iter(difflib.get_close_matches(name, list(known), n=1)), None)


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
