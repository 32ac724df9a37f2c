"""What the Python members share: their configuration, commands from stdin, events to stdout.

A member is told once, as JSON in its first argument, whom to join. After that it takes one
command per line (`pause`, `resume`, `seek`, `leave`) and writes one JSON object per event. A
message is written when it has been processed, and committed after that.
"""

import json
import queue
import sys
import threading
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple


class MemberConfig(NamedTuple):
    """Whom to join, and how."""

    bootstrap: str
    group: str
    topic: str
    assignor: str
    protocol: str = "classic"
    instance_id: str | None = None
    session_timeout_ms: int = 20_000
    heartbeat_interval_ms: int = 500


class Session:
    """One member's life as seen from the test. Commands are read by a thread of their own."""

    def __init__(self) -> None:
        self.config = MemberConfig(**json.loads(sys.argv[1]))
        self._commands: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        threading.Thread(target=self._read_commands, daemon=True).start()

    def _read_commands(self) -> None:
        for line in sys.stdin:
            self._commands.put(json.loads(line))
        self._commands.put({"do": "leave"})

    def commands(self) -> Iterator[dict[str, Any]]:
        """What has been asked since the last call; never waits."""
        while not self._commands.empty():
            yield self._commands.get()

    def emit(self, event: str, **facts: object) -> None:
        sys.stdout.write(json.dumps({"event": event, **facts}) + "\n")
        sys.stdout.flush()

    def processed(self, topic: str, partition: int, offset: int, value: bytes) -> None:
        self.emit("message", topic=topic, partition=partition, offset=offset, value=value.decode())

    def assigned(self, partitions: Iterable[Any]) -> None:
        self.emit("assigned", partitions=sorted(each.partition for each in partitions))

    def revoked(self, partitions: Iterable[Any]) -> None:
        self.emit("revoked", partitions=sorted(each.partition for each in partitions))

    def lost(self, partitions: Iterable[Any]) -> None:
        self.emit("lost", partitions=sorted(each.partition for each in partitions))
