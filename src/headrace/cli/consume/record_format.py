r"""How `headrace consume` prints a record: its value, a JSON object, or a format as kcat has it.

`%t` topic, `%p` partition, `%o` offset, `%T` timestamp in milliseconds, `%k` key, `%s` value,
`%h` headers as name=value,…, `%K` and `%S` the bytes of key and value (-1: null), `%%` a percent
sign; `\n`, `\r`, `\t`, `\0`, `\xHH` and `\\` as usual. A null key or value prints as nothing.
"""

import base64
import re
from collections.abc import Callable
from json.encoder import encode_basestring as quoted
from typing import Protocol

from headrace.cli.escapes import unescape

Headers = list[tuple[str, bytes | None]]


class ReadRecord(Protocol):
    """What is used of a message as librdkafka has it."""

    def topic(self) -> str: ...
    def partition(self) -> int: ...
    def offset(self) -> int: ...
    def timestamp(self) -> tuple[int, int]: ...
    def key(self) -> bytes | None: ...
    def value(self) -> bytes | None: ...
    def headers(self) -> Headers | None: ...


Format = Callable[[ReadRecord], bytes]

_PART = re.compile(r"%(.?)", re.S)
_FIELDS: dict[str, Format] = {
    "t": lambda record: record.topic().encode(),
    "p": lambda record: b"%d" % record.partition(),
    "o": lambda record: b"%d" % record.offset(),
    "T": lambda record: b"%d" % record.timestamp()[1],
    "k": lambda record: record.key() or b"",
    "s": lambda record: record.value() or b"",
    "h": lambda record: _headers_text(record.headers()),
    "K": lambda record: _size_text(record.key()),
    "S": lambda record: _size_text(record.value()),
    "%": lambda _record: b"%",
}


def value_format(end: bytes) -> Format:
    """The value and `end`; a null value is empty."""
    return lambda record: (record.value() or b"") + end


def json_format(end: bytes) -> Format:
    """One JSON object, which `headrace produce --json-lines` reads back."""
    return lambda record: as_json(record) + end


def as_json(record: ReadRecord) -> bytes:
    """The record as an object; bytes that are not UTF-8 come in base64, as <name>_base64."""
    # Put together by hand: json.dumps takes several times as long.
    timestamp_ms = record.timestamp()[1]
    headers = ", ".join(
        f'{{"key": {quoted(name)}, {_member("value", value)}}}'
        for name, value in record.headers() or ()
    )
    return (
        f'{{"topic": {quoted(record.topic())}, "partition": {record.partition()}, '
        f'"offset": {record.offset()}, '
        f'"timestamp": {"null" if timestamp_ms < 0 else timestamp_ms}, '
        f'{_member("key", record.key())}, "headers": [{headers}], '
        f"{_member('value', record.value())}}}"
    ).encode()


def custom_format(text: str, end: bytes) -> Format:
    """The format written as `text`, then `end`; ValueError says what is wrong with it."""
    parts, position = list[Format](), 0
    for match in _PART.finditer(text):
        _add_literal(parts, text[position : match.start()])
        position = match.end()
        if match[1] not in _FIELDS:
            known = ", ".join(f"%{name}" for name in _FIELDS)
            raise ValueError(f"%{match[1]} means nothing; there are {known}")
        parts.append(_FIELDS[match[1]])
    _add_literal(parts, text[position:])
    return lambda record: b"".join([part(record) for part in parts]) + end


def _add_literal(parts: list[Format], text: str) -> None:
    if literal := unescape(text):
        parts.append(lambda _record: literal)


def _member(name: str, value: bytes | None) -> str:
    if value is None:
        return f'"{name}": null'
    try:
        return f'"{name}": {quoted(value.decode())}'
    except UnicodeDecodeError:
        return f'"{name}_base64": "{base64.b64encode(value).decode()}"'


def _headers_text(headers: Headers | None) -> bytes:
    return b",".join(name.encode() + b"=" + (value or b"") for name, value in headers or ())


def _size_text(value: bytes | None) -> bytes:
    return b"%d" % (-1 if value is None else len(value))
