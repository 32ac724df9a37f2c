"""Kafka's own Java producer and consumer, through their console tools."""

from collections.abc import Sequence

from tests.interop.clients.client import READ_TIMEOUT_S, Message

from headrace.errors import EngineError
from headrace.java.installation import find_java
from headrace.kafka.jars import kafka_jars
from headrace.kafka.tools import CONSOLE_CONSUMER, CONSOLE_PRODUCER, run_tool

_NULL = "<null>"
_READER = {
    "parse.key": "true",
    "parse.headers": "true",
    "headers.delimiter": "~",
    "headers.separator": ";",
    "headers.key.separator": ":",
    "key.separator": "|",
    "null.marker": _NULL,
}
_FORMATTER = {
    "print.timestamp": "true",
    "print.headers": "true",
    "print.key": "true",
    "headers.separator": ";",
    "key.separator": "|",
    "null.literal": _NULL,
    "line.separator": "\x1e",
}


class JavaConsole:
    name = "java"
    sets_timestamps = False
    sends_null_headers = True
    sends_any_bytes = False

    def why_absent(self) -> str | None:
        try:
            find_java()
            kafka_jars()
        except EngineError as error:
            return str(error)
        return None

    def write(
        self, bootstrap: str, topic: str, partition: int, codec: str, messages: Sequence[Message]
    ) -> None:
        """The tool cannot choose a partition: `partition` must be the topic's only one."""
        assert partition == 0
        answer = run_tool(
            CONSOLE_PRODUCER,
            *("--bootstrap-server", bootstrap, "--topic", topic, "--compression-codec", codec),
            *_options("--reader-property", _READER),
            stdin="".join(_line(message) + "\n" for message in messages),
        )
        assert (answer.return_code, answer.stderr) == (0, "")

    def read(self, bootstrap: str, topic: str, partition: int, count: int) -> list[Message]:
        answer = run_tool(
            CONSOLE_CONSUMER,
            *("--bootstrap-server", bootstrap, "--topic", topic),
            *("--partition", str(partition), "--offset", "earliest"),
            *("--max-messages", str(count), "--timeout-ms", str(READ_TIMEOUT_S * 1000)),
            *_options("--formatter-property", _FORMATTER),
        )
        assert answer.return_code == 0, answer.stderr
        return [_message(line) for line in answer.stdout.split("\x1e")[:-1]]


def _options(flag: str, properties: dict[str, str]) -> list[str]:
    return [part for name, value in properties.items() for part in (flag, f"{name}={value}")]


def _line(message: Message) -> str:
    headers = ";".join(f"{name}:{_text(value)}" for name, value in message.headers)
    return f"{headers or _NULL}~{_text(message.key)}|{_text(message.value)}"


def _message(line: str) -> Message:
    timestamp, headers, key, value = line.split("|")
    return Message(
        _bytes(key), _bytes(value), tuple(_headers(headers)), int(timestamp.partition(":")[2])
    )


def _headers(text: str) -> list[tuple[str, bytes | None]]:
    if text == "NO_HEADERS":
        return []
    pairs = (pair.split(":") for pair in text.split(";"))
    return [(name, _bytes(value)) for name, value in pairs]


def _text(content: bytes | None) -> str:
    return _NULL if content is None else content.decode()


def _bytes(text: str) -> bytes | None:
    return None if text == _NULL else text.encode()
