"""What all members of a test have said, in the order it arrived, and waiting for more of it."""

import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

Event = dict[str, Any]
WAIT_S = 180.0


class Processed(NamedTuple):
    """One message that one member has processed."""

    member: str
    partition: int
    offset: int
    value: str


class Journal:
    """Written by the threads that read the members' output, read by the test."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self.events: list[tuple[str, Event]] = []
        self.processed: list[Processed] = []
        self.gone: set[str] = set()  # members that ended without being told to

    def add(self, member: str, event: Event) -> None:
        with self._changed:
            self.events.append((member, event))
            if event["event"] == "message":
                self.processed.append(
                    Processed(member, event["partition"], event["offset"], event["value"])
                )
            self._changed.notify_all()

    def add_unexpected_end(self, member: str) -> None:
        with self._changed:
            self.gone.add(member)
            self._changed.notify_all()

    def wait_until(self, what: str, is_so: Callable[[], bool], timeout_s: float = WAIT_S) -> None:
        """Return as soon as `is_so`; fail when it takes too long or a member is gone."""
        deadline = time.monotonic() + timeout_s
        with self._changed:
            while not is_so():
                left_s = deadline - time.monotonic()
                assert not self.gone, f"{self.gone} ended by itself\n{self.told()}"
                assert left_s > 0, f"not within {timeout_s:.0f} s: {what}\n{self.told()}"
                self._changed.wait(left_s)

    def of(self, member: str, *names: str) -> list[Event]:
        """The events of one member, or those of some names."""
        return [
            event
            for name, event in list(self.events)
            if name == member and (not names or event["event"] in names)
        ]

    def count(self, member: str) -> int:
        """How many messages a member has processed."""
        return sum(each.member == member for each in list(self.processed))

    def times_processed(self) -> Counter[str]:
        return Counter(each.value for each in list(self.processed))

    def had_to_be_repeated(self) -> set[str]:
        """The members whose work, or some of it, was done again later."""
        last_by: dict[str, str] = {}
        repeated: set[str] = set()
        for each in list(self.processed):
            if each.value in last_by:
                repeated.add(last_by[each.value])
            last_by[each.value] = each.member
        return repeated

    def told(self) -> str:
        """The story so far without the messages, for the text of a failure."""
        lines = [
            f"{member}: {event}"
            for member, event in self.events
            if event["event"] not in ("message", "committed")
            and "Reached end of topic" not in event.get("text", "")
        ]
        processed = Counter(each.member for each in self.processed)
        return "\n".join([*lines[-80:], f"processed: {dict(processed)}"])
