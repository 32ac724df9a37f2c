"""The load generators as functions: run one to its end, return what it counted."""

import functools
import importlib.metadata
import json
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.build import build
from bench.errors import BenchError

_GRACE_S = 120  # beyond the asked-for duration: draining, or a broker that stalls
_UNTIL_COUNTED_S = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """What went over the wire in one direction, and how long it took."""

    messages: int
    bytes: int
    seconds: float
    requests: int = 0
    mean_us: float = 0
    p50_us: float = 0
    p99_us: float = 0
    p999_us: float = 0
    max_us: float = 0

    @property
    def messages_per_second(self) -> float:
        return self.messages / self.seconds

    @property
    def megabytes_per_second(self) -> float:
        return self.bytes / self.seconds / 1e6

    @property
    def requests_per_second(self) -> float:
        return self.requests / self.seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientResult:
    """Both directions of one run; `client_cpu_seconds` tells whether the client was the limit."""

    produce: Traffic | None
    fetch: Traffic | None
    client_cpu_seconds: float


def replay(
    port: int,
    *,
    produce: Path | None = None,
    fetch: Path | None = None,
    connections: int = 1,
    in_flight: int = 1,
    fetch_connections: int = 1,
    seconds: float | None = None,
    count: int | None = None,
    loops: bool = False,
) -> ClientResult:
    """Replay the requests in the files `produce` and `fetch` for `seconds` or `count` produces."""
    command: list[str | Path] = [build("replay"), "--port", str(port)]
    if produce:
        command += ["--produce", produce, "--produce-connections", str(connections)]
        command += ["--in-flight", str(in_flight)]
    if fetch:
        command += ["--fetch", fetch, "--fetch-connections", str(fetch_connections)]
    if count:
        command += ["--count", str(count)]
    if seconds:
        command += ["--seconds", str(seconds)]
    if loops:
        command.append("--loop")
    return _run(command, seconds or _UNTIL_COUNTED_S)


@contextmanager
def beating(
    port: int, members: Path, *, interval_ms: int, seconds: float
) -> Iterator[Callable[[], Traffic]]:
    """Let the members in the file heartbeat; call what is yielded to await the end."""
    command: list[str | Path] = [build("beat"), "--port", str(port), "--members", members]
    command += ["--interval-ms", str(interval_ms), "--seconds", str(seconds)]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def finish() -> Traffic:
        output, errors = running.communicate(timeout=seconds + _GRACE_S)
        if running.returncode:
            raise BenchError(errors.strip() or f"beat exited with {running.returncode}")
        return Traffic(**json.loads(output)["heartbeat"])

    try:
        assert running.stdout is not None
        running.stdout.readline()  # "ready", or the end: `finish` tells why
        yield finish
    finally:
        running.kill()
        running.wait()


def librdkafka_produce(
    port: int, topic: str, *, value_bytes: int, seconds: float, settings: Mapping[str, str]
) -> ClientResult:
    """Produce with librdkafka's default batching, one producer, for `seconds`."""
    return _librdkafka("produce", port, topic, seconds, value_bytes, settings)


def librdkafka_consume(
    port: int, topic: str, *, messages: int, seconds: float, settings: Mapping[str, str]
) -> ClientResult:
    """Consume partition 0 from its beginning, over and over each `messages`, for `seconds`."""
    return _librdkafka("consume", port, topic, seconds, messages, settings)


def _librdkafka(
    mode: str, port: int, topic: str, seconds: float, number: int, settings: Mapping[str, str]
) -> ClientResult:
    where = [f"127.0.0.1:{port}", topic]
    command: list[str | Path] = [build("rdk"), librdkafka_library(), mode, *where]
    command += [str(seconds), str(number)]
    return _run([*command, *(f"{key}={value}" for key, value in settings.items())], seconds)


@functools.cache
def librdkafka_library() -> str:
    """Return the librdkafka inside the confluent-kafka wheel, or the system's by name."""
    for file in importlib.metadata.files("confluent-kafka") or ():
        if file.name.startswith("librdkafka") and ".so" in file.name:
            return str(file.locate())
    return "librdkafka.so.1"


def _run(command: list[str | Path], seconds: float) -> ClientResult:
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=seconds + _GRACE_S)
    except subprocess.TimeoutExpired as error:
        raise BenchError(
            f"{Path(command[0]).name} did not end {_GRACE_S} s after its time"
        ) from error
    if answer.returncode:
        raise BenchError(answer.stderr.strip() or f"{command[0]} exited with {answer.returncode}")
    return parse_result(answer.stdout)


def parse_result(text: str) -> ClientResult:
    """Read the JSON a load generator prints."""
    fields: dict[str, Any] = json.loads(text)
    # librdkafka's word for it is consume; the direction is the same.
    fetch = fields.get("fetch") or fields.get("consume")
    produce = fields.get("produce")
    return ClientResult(
        produce=Traffic(**produce) if produce else None,
        fetch=Traffic(**fetch) if fetch else None,
        client_cpu_seconds=fields["client_cpu_seconds"],
    )
