"""One message as `headrace produce` sends it, made from a line of its input.

A line that makes no message raises BadLineError, whose text says what is wrong with it; where
the line stands is known to whoever reads.
"""

import base64
import binascii
import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import NamedTuple, NoReturn

from headrace.errors import HeadraceError

ANY_PARTITION = -1  # the partitioner chooses, by the key where there is one
NOW = 0  # librdkafka's word for "when it is sent"

Header = tuple[str, bytes | None]

_FIELDS = ("key", "value", "headers", "timestamp", "partition", "key_base64", "value_base64")
_IGNORED = ("topic", "offset")  # in what `headrace consume --json` prints
_MAX_TIMESTAMP_MS = 2**63 - 1


class BadLineError(HeadraceError):
    """A line that makes no message."""


class ParsedMessage(NamedTuple):
    """What is handed to the producer; a value of None is a tombstone."""

    value: bytes | None
    key: bytes | None = None
    headers: list[Header] | None = None
    timestamp_ms: int = NOW
    partition: int = ANY_PARTITION


class EveryMessage(NamedTuple):
    """What the command line says for every message; it wins over what a line says."""

    key: bytes | None = None
    headers: tuple[Header, ...] = ()
    partition: int | None = None


Parser = Callable[[bytes], ParsedMessage | None]  # None: the line is to be passed over


def value_parser(every: EveryMessage) -> Parser:
    """Read a whole line as a value."""
    key, headers, partition = every.key, list(every.headers) or None, _partition_for(every)
    return lambda line: ParsedMessage(line, key, headers, NOW, partition)


def key_value_parser(every: EveryMessage, separator: bytes) -> Parser:
    """Read a line as a key, the separator and a value; the first separator counts."""
    headers, partition = list(every.headers) or None, _partition_for(every)

    def parse(line: bytes) -> ParsedMessage:
        key, sign, value = line.partition(separator)
        if not sign:
            raise BadLineError(f"there is no key separator {_shown(separator)}")
        return ParsedMessage(value, key, headers, NOW, partition)

    return parse


def json_parser(every: EveryMessage) -> Parser:
    """Read a line as a JSON object of key, value, headers, timestamp and partition."""

    def parse(line: bytes) -> ParsedMessage | None:
        if not line.strip():
            return None
        message = parse_json_line(line)
        if every.key is not None:
            message = message._replace(key=every.key)
        if every.partition is not None:
            message = message._replace(partition=every.partition)
        if every.headers:
            message = message._replace(headers=[*(message.headers or ()), *every.headers])
        return message

    return parse


def parse_json_line(line: bytes) -> ParsedMessage:
    """Read one object; raises BadLineError with the field that is wrong."""
    try:
        entry = json.loads(line, parse_constant=_refuse_constant)
    except UnicodeDecodeError as error:
        raise BadLineError(f"not UTF-8 at byte {error.start}") from None
    except (ValueError, RecursionError) as error:
        raise BadLineError(f"not JSON: {error}") from None
    if not isinstance(entry, dict):
        raise BadLineError(f"not a JSON object but {_kind(entry)}")
    if strange := [name for name in entry if name not in _FIELDS and name not in _IGNORED]:
        raise BadLineError(f"no field is called {strange[0]!r}; there are {', '.join(_FIELDS)}")
    if "value" not in entry and "value_base64" not in entry:
        raise BadLineError('there is no value; a tombstone has "value": null')
    return ParsedMessage(
        value=_bytes_of(entry, "value"),
        key=_bytes_of(entry, "key"),
        headers=_headers_of(entry.get("headers")),
        timestamp_ms=_timestamp_of(entry.get("timestamp")),
        partition=_partition_of(entry.get("partition")),
    )


def parse_header(text: str) -> Header:
    """Read NAME=VALUE; without the sign the header has no value."""
    name, sign, value = text.partition("=")
    return name, value.encode("utf-8", "surrogateescape") if sign else None


def _partition_for(every: EveryMessage) -> int:
    return ANY_PARTITION if every.partition is None else every.partition


def _bytes_of(entry: Mapping[str, object], name: str) -> bytes | None:
    coded = entry.get(f"{name}_base64")
    if coded is None:
        return _encoded(name, entry.get(name))
    if entry.get(name) is not None:
        raise BadLineError(f"{name} and {name}_base64 are both there; one will do")
    if not isinstance(coded, str):
        raise BadLineError(f"{name}_base64 is not a string but {_kind(coded)}")
    try:
        return base64.b64decode(coded, validate=True)
    except (binascii.Error, ValueError) as error:
        raise BadLineError(f"{name}_base64 is not base64: {error}") from None


def _encoded(name: str, plain: object) -> bytes | None:
    """A string as its UTF-8, null as None, anything else as compact JSON."""
    if plain is None:
        return None
    try:
        if isinstance(plain, str):
            return plain.encode()
        return json.dumps(
            plain, ensure_ascii=False, separators=(",", ":"), allow_nan=False
        ).encode()
    except UnicodeEncodeError:
        raise BadLineError(f"{name} has half a surrogate pair, which UTF-8 cannot hold") from None
    except ValueError:
        raise BadLineError(f"{name} has a number too large for JSON's doubles") from None


def _headers_of(headers: object) -> list[Header] | None:
    """Read {"name": "value"} or, where order or repeats count, [{"key": …, "value": …}]."""
    if headers is None:
        return None
    if isinstance(headers, dict):
        return [(name, _encoded(f"header {name!r}", value)) for name, value in headers.items()]
    if not isinstance(headers, list):
        raise BadLineError(f"headers is neither an object nor a list but {_kind(headers)}")
    found = list[Header]()
    for each in headers:
        if not isinstance(each, dict) or not isinstance(name := each.get("key"), str):
            raise BadLineError('a header in a list is an object with "key" and "value"')
        found.append((name, _bytes_of(each, "value")))
    return found


def _timestamp_of(timestamp: object) -> int:
    """Milliseconds since 1970, or a time in ISO 8601 (UTC unless it names a zone)."""
    if timestamp is None:
        return NOW
    if isinstance(timestamp, str):
        try:
            time = datetime.fromisoformat(timestamp)
        except ValueError:
            raise BadLineError(f"timestamp {timestamp!r} is no time in ISO 8601") from None
        if time.tzinfo is None:
            time = time.replace(tzinfo=UTC)
        timestamp = round(time.timestamp() * 1000)
    if isinstance(timestamp, bool) or not isinstance(timestamp, int):
        raise BadLineError(f"timestamp is not milliseconds since 1970 but {_kind(timestamp)}")
    if not 0 < timestamp <= _MAX_TIMESTAMP_MS:
        # librdkafka takes 0 for "now", and Kafka refuses what lies before 1970.
        raise BadLineError(f"timestamp {timestamp} cannot be sent; it has to be 1 or more")
    return timestamp


def _partition_of(partition: object) -> int:
    if partition is None:
        return ANY_PARTITION
    if isinstance(partition, bool) or not isinstance(partition, int) or partition < ANY_PARTITION:
        raise BadLineError(f"partition {partition!r} is no partition's number")
    return partition


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number in JSON")


def _kind(plain: object) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false"}
    return names.get(type(plain), "null" if plain is None else "a number")


def _shown(text: bytes) -> str:
    return repr(text.decode("utf-8", "backslashreplace"))
