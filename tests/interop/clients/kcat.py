"""kcat, as Debian packages it (librdkafka 2.0.2 there): an old librdkafka among the new clients."""

import json
import shutil
import subprocess
from collections.abc import Sequence
from itertools import groupby

from tests.interop.clients.client import READ_TIMEOUT_S, Message

_KEY_DELIMITER = "\t"


class Kcat:
    """Headers, and whether an empty text means null, hold for a whole run: one run per change."""

    name = "kcat"
    sets_timestamps = False
    sends_null_headers = True
    sends_any_bytes = False

    def why_absent(self) -> str | None:
        return None if shutil.which("kcat") else "kcat is not installed (Debian package kcat)"

    def write(
        self, bootstrap: str, topic: str, partition: int, codec: str, messages: Sequence[Message]
    ) -> None:
        for (headers, is_null), alike in groupby(
            messages, lambda message: (message.headers, message.value is None)
        ):
            arguments = ["-P", "-K", _KEY_DELIMITER, "-z", codec]
            arguments += ["-Z"] if is_null else []
            for name, value in headers:
                arguments += ["-H", name if value is None else f"{name}={value.decode()}"]
            lines = "".join(_line(message) + "\n" for message in alike)
            _run(bootstrap, topic, partition, *arguments, stdin=lines)

    def read(self, bootstrap: str, topic: str, partition: int, count: int) -> list[Message]:
        arguments = ("-C", "-o", "beginning", "-e", "-q", "-J", "-c", str(count))
        output = _run(bootstrap, topic, partition, *arguments)
        return [_message(json.loads(line)) for line in output.splitlines()]


def _line(message: Message) -> str:
    value = (message.value or b"").decode()
    # Without the delimiter there is no key; with it and -Z an empty one is null too.
    if message.key is None and message.value is not None:
        return value
    return (message.key or b"").decode() + _KEY_DELIMITER + value


def _message(envelope: dict) -> Message:
    flat = envelope.get("headers", [])
    headers = tuple(zip(flat[::2], map(_encoded, flat[1::2]), strict=True))
    return Message(
        _encoded(envelope["key"]), _encoded(envelope["payload"]), headers, envelope["ts"]
    )


def _encoded(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def _run(bootstrap: str, topic: str, partition: int, *arguments: str, stdin: str = "") -> str:
    # An empty configuration file: the user's own must not reach into the test.
    command = ["kcat", "-F", "/dev/null", "-b", bootstrap, "-t", topic, "-p", str(partition)]
    answer = subprocess.run(
        [*command, *arguments],
        input=stdin.encode(),
        capture_output=True,
        timeout=READ_TIMEOUT_S,
    )
    assert answer.returncode == 0, answer.stderr.decode()
    return answer.stdout.decode()
