"""What a broker was asked: a record that a test can look at or wait on."""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

from headrace.broker.dispatch import API_NAMES
from headrace.testing.api_names import api_key

# A test that runs for hours keeps the newest; older ones are forgotten, `total` still counts them.
MAX_KEPT = 100_000
_WAIT_SECONDS = 60.0


class SeenRequest(NamedTuple):
    """One request, by Kafka's name of its API."""

    api: str
    version: int
    client_id: str
    correlation_id: int
    peer: str


class SeenRequests:
    """Written by the broker's thread, read by the test's. Oldest first."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._seen: deque[SeenRequest] = deque(maxlen=MAX_KEPT)
        self.total = 0

    def __len__(self) -> int:
        return len(self._seen)

    def __iter__(self) -> Iterator[SeenRequest]:
        with self._changed:
            return iter(list(self._seen))

    def add(self, request: SeenRequest) -> None:
        """The broker has read one more."""
        with self._changed:
            self._seen.append(request)
            self.total += 1
            self._changed.notify_all()

    def clear(self) -> None:
        """Forget all."""
        with self._changed:
            self._seen.clear()

    def of(self, api: str | int, *, client_id: str | None = None) -> list[SeenRequest]:
        """Those for one API, of one client if asked so."""
        name = API_NAMES[api_key(api)]
        return [
            one
            for one in self
            if one.api == name and (client_id is None or one.client_id == client_id)
        ]

    def wait_for(
        self,
        api: str | int,
        count: int = 1,
        *,
        client_id: str | None = None,
        timeout_seconds: float = _WAIT_SECONDS,
    ) -> list[SeenRequest]:
        """Return those for one API once there are `count`; TimeoutError when they do not come."""
        found: list[SeenRequest] = []

        def has_come() -> bool:
            found[:] = self.of(api, client_id=client_id)
            return len(found) >= count

        if not self._wait(has_come, timeout_seconds):
            raise TimeoutError(
                f"{len(found)} of {count} {api} requests came within {timeout_seconds:g} s"
            )
        return found

    def _wait(self, has_come: Callable[[], bool], timeout_seconds: float) -> bool:
        with self._changed:
            return self._changed.wait_for(has_come, timeout_seconds)
