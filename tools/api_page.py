"""docs/api.md, made from the docstrings of what `headrace` exports.

`make docs` writes the page; a test fails when it is out of date, and runs every example.
"""

import dataclasses
import inspect
import sys
import textwrap
from collections.abc import Iterator

import headrace

# What the parts of headrace ask of each other, and no user needs.
INSIDE = {
    "Admin": {"ask", "ask_once", "failure", "on_error", "raw", "reach", "result", "with_timeout"},
    "Broker": {"loop", "server"},
    "Cluster": {"await_ready", "broker_addresses", "check_is_there", "in_use"},
    "Consumer": {"end_in_child", "fill", "has_more", "is_closed", "take", "was_interrupted"},
    "Delivery": {"finish", "is_failure_unseen"},
    "Producer": {"abandon", "end_in_child", "full", "offer", "settle"},
}
TWINS = {"AsyncAdmin": "Admin", "AsyncConsumer": "Consumer", "AsyncProducer": "Producer"}
# In the order one meets them.
CLASSES = (
    "Broker",
    "Cluster",
    "Bus",
    "Producer",
    "Delivery",
    "Consumer",
    "Message",
    "Position",
    "Admin",
    "AsyncProducer",
    "AsyncConsumer",
    "AsyncAdmin",
)
ERRORS = ("HeadraceError", "BusError", "ConfigError", "PropertyError")
_HEAD = """\
# headrace from Python

<!-- Made by `make docs` from the docstrings; change them there. -->

`import headrace` costs milliseconds: each name is loaded when it is first used. All are typed. What
is on this page, in `headrace.pipelines` ([pipelines.md](pipelines.md)), in `headrace.testing`
([testing.md](testing.md)) and in `headrace.kafka.drill` ([drill.md](drill.md)) is for programs to
import; anything else may change between versions.

A whole program, with the broker inside it:

"""
_EXAMPLES = """
The examples below have all that `headrace` exports, and a `bus`: `Bus("127.0.0.1:9092")`, say,
where `headrace serve` or any Kafka listens, or one that a `Broker` or a `Cluster` gives. Those with
`await` stand in a coroutine.
"""
_RUN = "<!-- docs-test: skip: tests/tools/test_api_page.py runs it -->"


def render() -> str:
    """The whole page."""
    parts = [_HEAD + _fenced(*examples_in(headrace)), _EXAMPLES]
    for name in CLASSES:
        parts.append("\n".join(_class(name)))
    parts.append("## Errors\n\n| | |\n|---|---|")
    parts[-1] += "".join(
        f"\n| `{name}` | {_first_line(getattr(headrace, name))} |" for name in ERRORS
    )
    parts[-1] += "\n\n" + "".join(
        _fenced(example) for name in ERRORS for example in examples_in(getattr(headrace, name))
    )
    return "\n".join(parts)


def examples_in(documented: object) -> list[str]:
    """The indented blocks of a docstring."""
    paragraphs = (inspect.getdoc(documented) or "").split("\n\n")
    joined = list[str]()
    for before, paragraph in zip(["", *paragraphs], paragraphs, strict=False):
        if not paragraph.startswith("    "):
            continue
        if before.startswith("    "):
            joined[-1] += "\n\n" + paragraph
        else:
            joined.append(paragraph)
    return [textwrap.dedent(each).rstrip() + "\n" for each in joined]


def _class(name: str) -> Iterator[str]:
    described = getattr(headrace, name)
    examples = iter(examples_in(described))
    yield f"## {name}\n"
    before = ""
    for paragraph in (inspect.getdoc(described) or "").split("\n\n"):
        if not paragraph.startswith("    "):
            yield paragraph + "\n"
        elif not before.startswith("    "):
            yield _fenced(next(examples))
        before = paragraph
    if hasattr(described, "_fields") or dataclasses.is_dataclass(described):
        yield f"`{name}{_arguments(described)}`\n"
    elif described.__init__.__doc__ not in (None, object.__init__.__doc__):
        yield f"`{name}{_arguments(described)}`\n"
        if (made := inspect.getdoc(described.__init__)) and name not in TWINS:
            yield made + "\n"
    if name in TWINS:
        yield _twins(name)
        return
    yield "| | |\n|---|---|"
    for member, value in _members(name):
        yield f"| `{_call(name, member, value)}` | {_first_line(value)} |"
    yield ""


def _twins(name: str) -> str:
    twin = getattr(headrace, name)
    awaited, plain = list[str](), list[str]()
    for member, _ in _members(TWINS[name]):
        is_awaited = inspect.iscoroutinefunction(getattr(twin, member))
        (awaited if is_awaited else plain).append(f"`{member}`")
    if "close" in vars(twin) and "`close`" not in awaited:
        awaited.append("`close`")
    sentence = f"As in `{TWINS[name]}`; awaited are {', '.join(awaited)}"
    return sentence + (f", not awaited {', '.join(plain)}.\n" if plain else ".\n")


def _members(name: str) -> Iterator[tuple[str, object]]:
    described = getattr(headrace, name)
    for member, value in vars(described).items():
        is_inside = member.startswith("_") or member in INSIDE.get(name, ())
        if not is_inside and _first_line(value) and not inspect.isclass(value):
            yield member, value


def _call(name: str, member: str, value: object) -> str:
    if isinstance(value, classmethod | staticmethod):
        return f"{name}.{member}{_arguments(value.__func__)}"
    return f"{member}{_arguments(value)}" if callable(value) else member


class _Shown:
    """A default as a reader has it before him."""

    def __init__(self, default: object) -> None:
        text = repr(default)
        names = {repr(headrace.OLDEST): "OLDEST", "<factory>": "{}"}
        self._text = names.get(text, text if len(text) < 40 else "…")

    def __repr__(self) -> str:
        return self._text


def _arguments(called: object) -> str:
    """The parameters with their defaults; their types are for an editor to show."""
    given = list[inspect.Parameter]()
    for each in inspect.signature(called).parameters.values():  # type: ignore[arg-type]
        if each.name not in ("self", "cls", "sources"):
            has_default = each.default is not each.empty
            default = _Shown(each.default) if has_default else each.empty
            given.append(each.replace(annotation=each.empty, default=default))
    return str(inspect.Signature(given))


def _first_line(described: object) -> str:
    if isinstance(described, classmethod | staticmethod):
        described = described.__func__
    is_documented = callable(described) or isinstance(described, property)
    if not is_documented or not (text := inspect.getdoc(described)):
        return ""
    return " ".join(text.split("\n\n")[0].split()).replace("|", "\\|")


def _fenced(example: str) -> str:
    return f"{_RUN}\n```python\n{example}```\n"


if __name__ == "__main__":
    sys.stdout.write(render())
