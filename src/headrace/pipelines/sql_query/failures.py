"""What Spark's complaint about a query means, in one sentence with the place."""

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.errors import PySparkException

_CONDITION = re.compile(r"^\s*\[[A-Z0-9_.]+\]\s*")
_STATE = re.compile(r"\s*SQLSTATE: \w+.*", re.S)
_PLACE = re.compile(r"line (\d+),? pos (\d+)")
_QUOTED = re.compile(r"`((?:[^`]|``)*)`")

# What Kafka allows in a topic's name.
_TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]+")
# What Spark reads as files when it stands before a path: parquet.`/a`.
_FILE_FORMATS = frozenset({"avro", "binaryfile", "csv", "delta", "json", "orc", "parquet", "text"})
# Where Spark's own functions are; no catalog has tables there.
_BUILT_IN = ["system", "builtin"]

NOT_FOUND = "TABLE_OR_VIEW_NOT_FOUND"
TOO_MANY_PARTS = "REQUIRES_SINGLE_PART_NAMESPACE"


def sentence_of(error: "PySparkException") -> str:
    """The complaint without its class, state, plan and trace; the line and column behind it."""
    text = str(error)
    parameters = error.getMessageParameters() or {}
    condition = error.getCondition() or ""
    if condition.startswith("UNRESOLVED_COLUMN") and "objectName" in parameters:
        sentence = f"there is no column {names_in(parameters['objectName'])[-1]}"
        if proposal := parameters.get("proposal"):
            near = [names_in(each)[-1] for each in proposal.split(", ")]
            sentence += f"; did you mean {' or '.join(dict.fromkeys(near))}?"
    elif condition == "INVALID_IDENTIFIER":
        name = parameters.get("ident", "")
        sentence = f"a name with other signs than letters, digits and _ needs backticks: `{name}`"
    elif condition == NOT_FOUND:
        sentence = f"there is no table {parameters.get('relationName')}"
    else:
        stripped = _STATE.sub("", _CONDITION.sub("", text)).strip()
        sentence = (stripped.splitlines() or [condition])[0].rstrip(".")
    place = place_of(error)
    if place is None or _PLACE.search(sentence):
        return sentence
    return f"{sentence} (line {place[0]}, column {place[1]})"


def place_of(error: "PySparkException") -> tuple[int, int] | None:
    """The line and the column it complains of, both from 1."""
    from pyspark.errors import AnalysisException

    java: Any = getattr(error, "_origin", None) if isinstance(error, AnalysisException) else None
    if java is None:
        return None
    line, column = java.line(), java.startPosition()
    return (line.get(), column.get() + 1) if line.isDefined() and column.isDefined() else None


def never_a_topic(name: list[str]) -> str | None:
    """The sentence for a name that no topic can have; None for one that a topic may have."""
    word = ".".join(name)
    if is_built_in(name):
        return f"there is no function {word}, and no table; a topic of this name needs backticks"
    if _TOPIC_NAME.fullmatch(word):
        return None
    if is_file(name):
        return files_of(name)
    return (
        f"there is no table {word}, and no topic can have this name: only letters, digits, '.', "
        "'_' and '-'; files are named with their format, as in parquet.`/path`"
    )


def is_built_in(name: list[str]) -> bool:
    """Whether it names what Spark itself brings."""
    return [each.lower() for each in name[:-1]] == _BUILT_IN


def is_file(name: list[str]) -> bool:
    """Whether it names files by their format."""
    return len(name) > 1 and name[0].lower() in _FILE_FORMATS


def files_of(name: list[str]) -> str:
    """The sentence for files where Spark looks for tables alone."""
    word = f"{name[0]}.`{'.'.join(name[1:])}`"
    return (
        f"{word} names files, not a table: only a query reads them, such as "
        f"describe query select * from {word}"
    )


def names_in(quoted: str) -> list[str]:
    """The parts of a name that Spark has put in backticks."""
    found = [each.replace("``", "`") for each in _QUOTED.findall(quoted)]
    return found or [quoted]
