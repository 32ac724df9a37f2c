"""What Spark, py4j and Java raise, as one sentence with the fix.

A trace of several pages goes to the session's log file, which the sentence names; nothing of it
is lost and nothing of it is shown.
"""

import re
import traceback
from dataclasses import dataclass
from pathlib import Path

from headrace.errors import HeadraceError
from headrace.pipelines import errors
from headrace.pipelines.errors import PipelineDefinitionError, PipelineError, SparkError
from headrace.pipelines.spark.fault_rules import LOG_ON_CUT, RULES, Rule
from headrace.pipelines.spark.output import START_MARK

# Deeper chains of causes have not been seen; a chain that turns in a circle ends here.
_MAX_CAUSES = 20
# As much of the log's end as is searched for the reason when Java itself is gone.
_LOG_TAIL_BYTES = 64 * 1024

_OURS = re.compile(r"^headrace\.(?:\w+\.)?errors\.(?P<name>\w+): (?P<message>.+)$", re.MULTILINE)
# These wrap another error and say nothing themselves.
_WRAPPERS = "STREAM_FAILED|FOREACH_BATCH_USER_FUNCTION_ERROR|PYTHON_EXCEPTION|TASK_WRITE_FAILED"
_CONDITION = re.compile(
    rf"\[(?!(?:{_WRAPPERS})\])(?P<condition>[A-Z][A-Z0-9_.]+)\] (?P<message>.+?)"
    r"(?:\s*SQLSTATE|\n|$)"
)
_PYTHON_PLACE = re.compile(r'^ *File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>.+)$')
_PYTHON_ERROR = re.compile(r"^(?P<name>[A-Za-z_][\w.]*): (?P<message>.*)$|^(?P<bare>\w+Error)$")
_TRACEBACK = "Traceback (most recent call last):"
_PY4J_CALL = re.compile(r"^An error occurred while calling \S+\n: ")
_JAVA_CLASS = re.compile(r"^(?:Caused by: )?(?:[a-z][\w$]*\.)+(?P<name>[A-Z][\w$.]*)(?:: )?")
_CONNECTION_LINE = re.compile(r"WARN NetworkClient: .*Connection to node.*")
_JAVA_IS_GONE = (ConnectionError, EOFError)
_NO_ANSWER = "Java can no longer be asked"
_JAVA_NETWORK = re.compile(
    rf"{_NO_ANSWER}|"
    r"Answer from Java side is empty|Error while sending or receiving|"
    r"An error occurred while trying to connect to the Java server|JAVA_GATEWAY_EXITED|"
    r"Cannot call methods on a stopped SparkContext|cancelled because SparkContext was shut down|"
    # What py4j makes of no answer at all: the name of the call, or of the first package.
    r"^An error occurred while calling \S+\s*$|^\w+ does not exist in the JVM$"
)


@dataclass(frozen=True, slots=True)
class Failure:
    """What ended a batch or a query, with nothing in it that Java would have to be asked for."""

    sentence: PipelineError
    # Raised by this package rather than by Spark.
    is_own: bool
    # Whether the same thing, tried again, may well succeed.
    is_retriable: bool


def failure_of(error: BaseException, log_file: Path | None) -> Failure:
    """Put a failure into words now: what Spark raises is only a name for something in Java."""
    return Failure(
        sentence_of(error, log_file),
        is_own=isinstance(error, HeadraceError),
        is_retriable=getattr(error, "is_retriable", False) or is_retriable(error),
    )


def sentence_of(error: BaseException, log_file: Path | None) -> PipelineError:
    """Return an error whose text is one sentence; the whole of `error` goes to `log_file`.

    Ask while Java lives: afterwards the text of what it raised cannot be had any more.
    """
    if isinstance(error, PipelineError):
        return error
    if isinstance(error, HeadraceError):
        return SparkError(str(error))
    text = _text_of(error)
    if log_file:
        _write_down(error, text, log_file)
    return _explain(error, text, log_file)


def is_retriable(error: BaseException) -> bool:
    """Whether the same thing, tried again, may well succeed: a broker away, a worker lost."""
    if isinstance(error, HeadraceError):
        return error.__cause__ is not None and is_retriable(error.__cause__)
    text = _text_of(error)
    if _OURS.search(text):
        return False
    if rule := _rule_for(text):
        return rule.is_retriable
    # Whatever Java died of, a new one may live; one that never started will not.
    return _is_java_gone(error, text) and "JAVA_GATEWAY_EXITED" not in text


def _explain(error: BaseException, text: str, log_file: Path | None) -> PipelineError:
    if ours := list(_OURS.finditer(text)):
        return _our_own(ours[-1])
    is_gone = _is_java_gone(error, text)
    log = _tail(log_file) if log_file else ""
    searched = f"{text}\n{log}" if is_gone else text
    if rule := _rule_for(searched):
        # A broker that hangs up on a wrong protocol shows only as silence; the log's last word
        # about connections tells the two apart.
        last = _last(_CONNECTION_LINE, log) if rule.is_retriable else None
        if last and LOG_ON_CUT.pattern.search(last[0]):
            return _ruled(LOG_ON_CUT, last[0], log_file)
        return _ruled(rule, searched, log_file)
    if is_gone:
        never = "JAVA_GATEWAY_EXITED" in text
        what = "did not start" if never else "ended while it was needed"
        return SparkError(f"Spark's Java process {what}", log_file)
    if condition := _last(_CONDITION, text):
        message = " ".join(condition["message"].split()).rstrip(".;")
        return _detailed(PipelineDefinitionError, message[:1].lower() + message[1:], log_file)
    if _TRACEBACK in text:
        return SparkError(_python_line(text), log_file)
    return SparkError(_first_line(text) or type(error).__name__, log_file)


def _rule_for(text: str) -> Rule | None:
    return next((rule for rule in RULES if rule.pattern.search(text)), None)


def _ruled(rule: Rule, text: str, log_file: Path | None) -> PipelineError:
    match = rule.pattern.search(text)
    assert match
    if callable(rule.sentence):
        return _detailed(rule.kind, rule.sentence(match), log_file)
    groups = {name: _plain(value or "") for name, value in match.groupdict().items()}
    return _detailed(rule.kind, rule.sentence.format(**groups), log_file)


def _plain(text: str) -> str:
    """What Java said, without the code and the full stop at its end."""
    return text.partition(" SQLSTATE:")[0].strip().rstrip(".")


def _detailed(kind: type[PipelineError], sentence: str, log_file: Path | None) -> PipelineError:
    if issubclass(kind, SparkError):
        return kind(sentence, log_file)
    return kind(f"{sentence} (details in {log_file})" if log_file else sentence)


def _our_own(match: re.Match[str]) -> PipelineError:
    """An error of this package that went through Java, as its own kind again."""
    kind = getattr(errors, match["name"], None)
    if isinstance(kind, type) and issubclass(kind, PipelineError):
        return kind(match["message"])
    return PipelineError(match["message"])


def _is_java_gone(error: BaseException, text: str) -> bool:
    return isinstance(error, _JAVA_IS_GONE) or bool(_JAVA_NETWORK.search(text))


def _text_of(error: BaseException) -> str:
    """All Java says: the message, and the message of each cause."""
    parts = [_own_text(error)]
    java = getattr(error, "_origin", None) or getattr(error, "java_exception", None)
    try:
        while java is not None and len(parts) < _MAX_CAUSES:
            parts.append(str(java.toString()))
            java = java.getCause()
    except Exception:  # py4j's many, when Java has died meanwhile: what is here must do
        pass
    return "\n".join(parts)


def _own_text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # pyspark asks Java for it, and py4j has many ways to say that it is gone
        return f"{type(error).__name__}: {_NO_ANSWER}"


def _python_line(text: str) -> str:
    """The last error of the first traceback that goes deepest, and where in the user's code."""
    place: re.Match[str] | None = None
    found: re.Match[str] | None = None
    is_inside = False
    for line in text.splitlines():
        if line.endswith(_TRACEBACK):
            is_inside, found = True, None
        elif is_inside and (at := _PYTHON_PLACE.match(line)):
            if "site-packages" not in at["file"] or place is None:
                place = at
        elif is_inside and (said := _PYTHON_ERROR.match(line)):
            found, is_inside = said, False
    what = "a Python function failed"
    if found:
        what = found["bare"] or f"{found['name'].rpartition('.')[2]}: {found['message']}"
    return f"{what}, in {place['function']} ({place['file']}:{place['line']})" if place else what


def _first_line(text: str) -> str:
    """The first line of what Java says, without py4j's words before it and Java's packages."""
    lines = _PY4J_CALL.sub("", text.strip()).splitlines()
    return _JAVA_CLASS.sub(r"\g<name>: ", lines[0]).strip().removesuffix(":") if lines else ""


def _last(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    match = None
    for match in pattern.finditer(text):  # noqa: B007 - the last one is wanted
        pass
    return match


def _tail(log_file: Path) -> str:
    try:
        with log_file.open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - _LOG_TAIL_BYTES))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return ""
    return text.rpartition(START_MARK)[2]


def _write_down(error: BaseException, text: str, log_file: Path) -> None:
    trace = "".join(traceback.format_exception(error))
    try:
        log_file.parent.mkdir(parents=True, exist_ok=True)
        with log_file.open("a", encoding="utf-8") as file:
            file.write(f"{trace}\n{text}\n")
    except OSError:
        pass  # the sentence still says what happened
