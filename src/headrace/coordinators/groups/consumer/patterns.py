"""Subscriptions by regular expression: which topics one matches.

RE2, as in Kafka (which has the Java port of it): matching takes time linear in the name, so a
client's expression cannot hold up the event loop, as it could with `re`.
"""

from collections.abc import Collection, Iterator
from itertools import islice
from typing import Protocol

from headrace.coordinators.errors import InvalidRegexError

# Names matched in one go, one or two milliseconds' worth: others are served in between.
NAMES_AT_ONCE = 200

# The faults that RE2 names, as the Java port names them, which clients of Kafka are told.
_KAFKAS_WORDS = {
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "unexpected )": "regexp/syntax: internal error",
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "trailing \\": "trailing backslash at end of expression",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
}


class Pattern(Protocol):
    """A compiled expression."""

    def fullmatch(self, text: str) -> object | None:
        """A match of the whole text, or None."""


def compile_pattern(regex: str) -> Pattern:
    """Compile, or raise in Kafka's words. RE2 is imported at the first need of it."""
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        pattern: Pattern = re2.compile(regex, options)
    except re2.error as error:
        raise InvalidRegexError(
            f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {_fault(error)}."
        ) from error
    return pattern


def _fault(error: Exception) -> str:
    reason = error.args[0] if error.args else ""
    text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
    fault = text.partition(": ")[0]  # what follows is the part of the expression to blame
    return _KAFKAS_WORDS.get(fault, fault)


class TopicMatcher:
    """Which topics the expressions of one group match, found a slice of the names at a time.

    Soft state: it remembers which names have been looked at, so that after a topic has come or
    gone only the new names are matched.
    """

    def __init__(self) -> None:
        self._patterns: dict[str, Pattern] = {}
        self._matched: dict[str, frozenset[str]] = {}
        self._seen: dict[str, frozenset[str]] = {}

    def check(self, regex: str) -> None:
        """Raise InvalidRegexError unless it can be compiled."""
        if regex not in self._patterns:
            self._patterns[regex] = compile_pattern(regex)

    def search(self, regexes: Collection[str], names: frozenset[str]) -> Iterator[None]:
        """Match `names`, a slice at each step. Expressions that are left out are forgotten."""
        for regex in self._patterns.keys() - set(regexes):
            del self._patterns[regex]
            self._seen.pop(regex, None)
            self._matched.pop(regex, None)
        for regex in regexes:
            if self._seen.get(regex) is not names:
                yield from self._search(regex, names)

    def found(self, regex: str) -> frozenset[str]:
        """The names that the last search found for this expression."""
        return self._matched[regex]

    def _search(self, regex: str, names: frozenset[str]) -> Iterator[None]:
        self.check(regex)
        pattern = self._patterns[regex]
        matched = set(self._matched.get(regex, frozenset()) & names)
        new = iter(names - self._seen.get(regex, frozenset()))
        while part := tuple(islice(new, NAMES_AT_ONCE)):
            matched.update(name for name in part if pattern.fullmatch(name))
            yield
        self._seen[regex], self._matched[regex] = names, frozenset(matched)
