"""What Spark's complaint about a query means, in one sentence with the place."""

import logging
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.errors import PySparkException

_CONDITION = re.compile(r"^\s*\[[A-Z0-9_.]+\]\s*")
_STATE = re.compile(r"\s*SQLSTATE: \w+.*", re.S)
_PLACE = re.compile(r"line (\d+),? pos (\d+)")
_QUOTED = re.compile(r"`((?:[^`]|``)*)`")

# pyspark logs each complaint about a query as a page of JSON on stderr, besides raising it.
_LOUD_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")

NOT_FOUND = "TABLE_OR_VIEW_NOT_FOUND"
TOO_MANY_PARTS = "REQUIRES_SINGLE_PART_NAMESPACE"


def hush() -> None:
    """Keep pyspark from logging what it raises."""
    from pyspark.logger import PySparkLogger

    for name in _LOUD_LOGGERS:
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)


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
    place = _PLACE.search(text)
    if place is None or _PLACE.search(sentence):
        return sentence
    return f"{sentence} (line {place[1]}, column {int(place[2]) + 1})"


def names_in(quoted: str) -> list[str]:
    """The parts of a name that Spark has put in backticks."""
    found = [each.replace("``", "`") for each in _QUOTED.findall(quoted)]
    return found or [quoted]
