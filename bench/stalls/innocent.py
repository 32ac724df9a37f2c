"""The innocent client: pings a broker from its own process and says how long it had to wait."""

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from kio.static.primitive import i32Timedelta

from bench.build import build
from bench.errors import BenchError
from bench.members import join_members
from bench.requests import write_requests
from bench.stalls import frames
from headrace.records.builder import build_batch, numbered

TOPIC = "innocent"
SESSION_MS = 6_000  # the shortest that Kafka's default settings allow
_HEARTBEAT_MS = SESSION_MS // 3
_AT_MOST_SECONDS = 1800
_KINDS = ("api_versions", "produce", "metadata", "heartbeat")


@dataclass(frozen=True, slots=True, kw_only=True)
class InnocentWaits:
    """How long an innocent client waited, and what of it was this machine's doing."""

    longest_ms: float
    longest_kind: str  # which of its requests that was
    longest_at_seconds: float  # since the load began
    p50_ms: float
    p999_ms: float
    echo_longest_ms: float  # of a process that only echoes, at the same time
    client_gap_ms: float  # the longest the client itself did not run
    member_error: int  # of its heartbeats, 0: it is still in its group
    lost: tuple[str, ...]  # kinds whose connection was closed, or never answered
    requests: int
    seconds: float
    is_real_time: bool
    details: dict[str, Any]

    @property
    def is_evicted(self) -> bool:
        """Whether the group member with a 6 s session has lost its membership."""
        return self.member_error != 0


class Innocent:
    """Running since it was made; `begin` forgets the warm-up, `finish` ends it."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def begin(self) -> None:
        """Count from now on."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def finish(self) -> InnocentWaits:
        """Stop asking and wait for what is still open."""
        output, errors = self._process.communicate(timeout=_AT_MOST_SECONDS)
        if self._process.returncode:
            raise BenchError(errors.strip() or f"ping exited with {self._process.returncode}")
        return _waiting(json.loads(output))


@contextmanager
def innocent_client(port: int, scratch: Path) -> Iterator[Innocent]:
    """Join a group, then ping until the block ends."""
    session = i32Timedelta.parse(timedelta(milliseconds=SESSION_MS))
    (heartbeat,) = join_members(port, groups=1, members=1, session=session)
    batch = bytes(build_batch(numbered([b"i" * 100], timestamp=int(time.time() * 1000))))
    asked = (
        frames.encode(
            frames.API_VERSIONS, 3, client_software_name="ping", client_software_version="1"
        ).data,
        frames.produce([(TOPIC, 0, batch)]).data,
        frames.metadata([TOPIC]).data,
        heartbeat,
    )
    requests = scratch / "innocent.requests"
    write_requests(requests, ((frame, 0, 0, 0) for frame in asked))
    command: list[str | Path] = [build("ping"), "--port", str(port), "--requests", requests]
    command += ["--heartbeat-ms", str(_HEARTBEAT_MS), "--seconds", str(_AT_MOST_SECONDS)]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
    try:
        assert process.stdout is not None
        process.stdout.readline()  # "ready", or the end: `finish` tells why
        yield Innocent(process)
    finally:
        process.kill()
        process.communicate()


def _waiting(facts: dict[str, Any]) -> InnocentWaits:
    longest = max(_KINDS, key=lambda kind: float(facts[kind]["max_us"]))
    states = {kind: facts[f"{kind}_state"] for kind in _KINDS}
    lost = (kind for kind in _KINDS if states[kind]["is_lost"] or states[kind]["is_unanswered"])
    return InnocentWaits(
        longest_ms=facts[longest]["max_us"] / 1000,
        longest_kind=longest,
        longest_at_seconds=states[longest]["longest_at_seconds"],
        p50_ms=facts["all"]["p50_us"] / 1000,
        p999_ms=facts["all"]["p999_us"] / 1000,
        echo_longest_ms=facts["echo"]["max_us"] / 1000,
        client_gap_ms=facts["longest_gap_us"] / 1000,
        member_error=states["heartbeat"]["error"],
        lost=tuple(lost),
        requests=facts["all"]["requests"],
        seconds=facts["all"]["seconds"],
        is_real_time=facts["is_real_time"],
        details=facts,
    )
