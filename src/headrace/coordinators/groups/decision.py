"""What the coordinator wants done about a request, in order: write, make it so, answer."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from headrace.coordinators.groups.messages import GroupOutcome, JoinReply, SyncReply, Ticket
from headrace.coordinators.groups.records import GroupRecord

_Reply = TypeVar("_Reply")


def nothing() -> None:
    """The state follows by itself."""


def no_outcome(now_ms: int) -> GroupOutcome:
    """There is nothing to take back."""
    return GroupOutcome()


@dataclass(slots=True)
class Decision(Generic[_Reply]):
    """One step of one group.

    The caller writes `records` as one batch, then calls `on_written` before any other step of the
    group, then gives `reply` and `answers`. When the write fails it calls `on_failed` instead and
    gives the answers of what that returns; to all of `answers` it says that the write failed.
    """

    group_id: str
    reply: _Reply
    records: Sequence[GroupRecord] = ()
    answers: list[tuple[Ticket, JoinReply | SyncReply]] = field(default_factory=list)
    on_written: Callable[[], None] = nothing
    on_failed: Callable[[int], GroupOutcome] = no_outcome
