"""What happened during a drill, and at which second.

The clock starts with the timeline. Several threads add to it; an event is where its time
puts it, also when it is told late.
"""

import threading
import time
from bisect import insort
from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple


class EventKind(StrEnum):
    """What an event is about."""

    SCENARIO = "scenario"
    FAULT = "fault"  # what the drill did to a node
    NODE = "node"  # what it did to bring one back, and that it is back
    LEADER = "leader"
    ISR = "isr"
    CONTROLLER = "controller"
    ACKS = "acks"  # what publishers saw
    NOTE = "note"


class Event(NamedTuple):
    """One thing that happened. `node` is the node it happened to, where there is one."""

    at_s: float
    kind: EventKind
    text: str
    node: int | None = None


class Timeline:
    """Thread-safe. `on_event` is called for each event, in the thread that adds it."""

    def __init__(
        self,
        on_event: Callable[[Event], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._started = clock()
        self._on_event = on_event
        self._lock = threading.Lock()
        self._events = list[Event]()

    def now_s(self) -> float:
        """Seconds since the drill began."""
        return self._clock() - self._started

    def add(
        self, kind: EventKind, text: str, *, node: int | None = None, at_s: float | None = None
    ) -> Event:
        """Note what happened, now unless `at_s` says when."""
        event = Event(self.now_s() if at_s is None else at_s, kind, text, node)
        with self._lock:
            insort(self._events, event, key=lambda each: each.at_s)
        if self._on_event is not None:
            self._on_event(event)
        return event

    def between(self, start_s: float, end_s: float) -> tuple[Event, ...]:
        """The events from `start_s` to before `end_s`."""
        with self._lock:
            return tuple(event for event in self._events if start_s <= event.at_s < end_s)
