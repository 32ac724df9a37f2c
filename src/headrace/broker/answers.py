"""Answers that wait for their turn: a connection sends them in the order of their requests."""

import asyncio

from headrace.log.partition_log import FileSlice

Piece = bytes | FileSlice


class Answer:
    """One answer's place in the queue. It is sent when it is ready and everything before it is."""

    __slots__ = ("is_ready", "pieces")

    def __init__(self) -> None:
        self.is_ready = False
        self.pieces: tuple[Piece, ...] | list[Piece] = ()

    def cancel(self) -> None:
        """The client is gone: nobody waits for this any more."""


class SlowAnswer(Answer):
    """One that a task is working at: the task ends with the connection.

    Changes of metadata that have begun are carried through all the same (`changes.py`).
    """

    __slots__ = ("task",)

    def __init__(self) -> None:
        super().__init__()
        self.task: asyncio.Task[None] | None = None

    def cancel(self) -> None:
        """The client is gone: nobody waits for this any more."""
        if self.task is not None:
            self.task.cancel()
