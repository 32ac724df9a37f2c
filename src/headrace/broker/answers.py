"""Answers that wait for their turn: a connection sends them in the order of their requests."""

import asyncio
from typing import Protocol

from headrace.log.partition_log import FileSlice
from headrace.protocol.produce_shape import ProduceShapes

Piece = bytes | FileSlice


class QueuedAnswer:
    """One answer's place in the queue. It is sent when it is ready and everything before it is."""

    __slots__ = ("is_ready", "pieces")

    def __init__(self) -> None:
        self.is_ready = False
        self.pieces: tuple[Piece, ...] | list[Piece] = ()

    def cancel(self) -> None:
        """The client is gone: nobody waits for this any more."""


class SlowAnswer(QueuedAnswer):
    """One that a task is working at: the task ends with the connection.

    Changes of metadata that have begun are carried through all the same (`metadata_changes.py`).
    """

    __slots__ = ("task",)

    def __init__(self) -> None:
        super().__init__()
        self.task: asyncio.Task[None] | None = None

    def cancel(self) -> None:
        """The client is gone: nobody waits for this any more."""
        if self.task is not None:
            self.task.cancel()


class Channel(Protocol):
    """A client's connection, as those see it who answer its requests."""

    peer: str
    shapes: ProduceShapes

    def reserve(self, answer: QueuedAnswer) -> None:
        """Give `answer` its place behind all requests that came before."""

    def complete(self, answer: QueuedAnswer) -> None:
        """`answer` is ready; send what can be sent in order."""

    def hold(self) -> None:
        """Serve no further request, and read none, until `go_on`."""

    def go_on(self) -> None:
        """The request that held the connection is done."""

    def close(self) -> None:
        """Close at once; unanswered requests get no answer."""
