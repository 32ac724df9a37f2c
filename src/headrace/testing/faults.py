"""Faults to order: what a broker under test does wrong, and when.

Every rule counts the requests of its API from the moment it was set: `nth=3` leaves two alone.
Rules are set by the test's thread and read by the broker's.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum

from kio.schema.errors import ErrorCode

from headrace.testing.api_names import api_key

ANY_API = -1


class FaultKind(Enum):
    """What happens to the request."""

    FAIL = "answered with an error, and not carried out"
    DELAY = "carried out later; the connection's next requests wait behind it"
    DISCONNECT = "neither carried out nor answered; the connection is closed"
    LOSE_ANSWER = "carried out, but the connection is closed before the answer"


@dataclass(slots=True)
class FaultRule:
    """One rule, and how far it has come."""

    kind: FaultKind
    api_key: int
    nth: int
    times: int | None  # None: from the nth on, for ever
    code: ErrorCode = ErrorCode.none
    seconds: float = 0.0
    seen: int = 0

    def strikes(self, key: int) -> bool:
        """Count a request in; tell whether it is one to strike."""
        if self.api_key not in (ANY_API, key):
            return False
        self.seen += 1
        return self.nth <= self.seen and (self.times is None or self.seen < self.nth + self.times)


class Faults:
    """The rules in force. The first one that strikes decides."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rules: list[FaultRule] = []
        self.is_refusing = False

    def fail(
        self, api: str | int, error: str | int, *, nth: int = 1, times: int | None = 1
    ) -> None:
        """Answer the nth request for `api` (and `times` in all) with Kafka's error.

        `error` is Kafka's name, in any case (`NOT_LEADER_OR_FOLLOWER`), or its number.
        """
        self._add(FaultRule(FaultKind.FAIL, api_key(api), nth, times, code=_code(error)))

    def delay(
        self, api: str | int | None, seconds: float, *, nth: int = 1, times: int | None = None
    ) -> None:
        """Hold requests for `api` (None: all) back this long before they are carried out."""
        self._add(FaultRule(FaultKind.DELAY, _key(api), nth, times, seconds=seconds))

    def disconnect(self, api: str | int | None, *, nth: int = 1, times: int | None = 1) -> None:
        """Close the connection on the nth request for `api`; it is not carried out."""
        self._add(FaultRule(FaultKind.DISCONNECT, _key(api), nth, times))

    def lose_answer(self, api: str | int | None, *, nth: int = 1, times: int | None = 1) -> None:
        """Carry the nth request for `api` out, and close the connection instead of answering."""
        self._add(FaultRule(FaultKind.LOSE_ANSWER, _key(api), nth, times))

    @contextmanager
    def refused_connections(self) -> Iterator[None]:
        """Close every new connection at once, inside the `with`; those open stay."""
        self.is_refusing = True
        try:
            yield
        finally:
            self.is_refusing = False

    def clear(self) -> None:
        """Behave again."""
        with self._lock:
            self._rules.clear()
        self.is_refusing = False

    def strike(self, key: int) -> FaultRule | None:
        """Count a request for an API in; the rule that strikes it, if one does."""
        with self._lock:
            striking = [rule for rule in self._rules if rule.strikes(key)]
        return striking[0] if striking else None

    def _add(self, fault: FaultRule) -> None:
        if fault.nth < 1 or (fault.times is not None and fault.times < 1):
            raise ValueError(f"nth={fault.nth}, times={fault.times}: both count from 1")
        with self._lock:
            self._rules.append(fault)


def _key(api: str | int | None) -> int:
    return ANY_API if api is None else api_key(api)


def _code(error: str | int) -> ErrorCode:
    try:
        return ErrorCode(error) if isinstance(error, int) else ErrorCode[error.lower()]
    except (KeyError, ValueError):
        raise ValueError(
            f"Kafka has no error {error!r}; give its name (REQUEST_TIMED_OUT) or its number (7)"
        ) from None
