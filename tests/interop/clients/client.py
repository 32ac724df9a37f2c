"""What every adapter offers, and the message all of them are compared by."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

READ_TIMEOUT_S = 120


class Message(NamedTuple):
    """One message. A timestamp of None was left to the client."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp_ms: int | None = None


class Client(Protocol):
    """A client that writes to and reads from one partition, without groups."""

    name: str
    sets_timestamps: bool
    sends_null_headers: bool
    sends_any_bytes: bool  # also line feeds, and bytes that are no UTF-8

    def why_absent(self) -> str | None:
        """Say what is missing on this machine, None when nothing is."""

    def write(
        self, bootstrap: str, topic: str, partition: int, codec: str, messages: Sequence[Message]
    ) -> None:
        """Write `messages` in order and return when all are acknowledged."""

    def read(self, bootstrap: str, topic: str, partition: int, count: int) -> list[Message]:
        """Read the first `count` messages of the partition; fewer when no more come."""
