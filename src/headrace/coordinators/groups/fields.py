"""The fields that records of `__consumer_offsets` are made of: read in order, or written.

Keys and old values have strings with a two-byte length; flexible values have compact ones and
end in tagged fields (KIP-482). Running off the bytes raises InvalidRecordError.
"""

from collections.abc import Callable, Iterable
from functools import lru_cache
from struct import Struct, error
from typing import TypeVar
from uuid import UUID

from headrace.protocol.errors import WireError
from headrace.protocol.primitives import read_array_length, read_span, read_uvarint, write_uvarint
from headrace.records.errors import InvalidRecordError

INT16 = Struct(">h")
INT32 = Struct(">i")
INT64 = Struct(">q")
_INT8 = Struct(">b")

NULL_STRING = b"\xff\xff"
NULL_COMPACT = b"\x00"
NO_TAGS = b"\x00"
MAX_STRING_BYTES = 2**15 - 1  # what a two-byte length can say

T = TypeVar("T")


class FieldReader:
    """Reads one key or value from front to back."""

    def __init__(self, data: bytes, position: int = 0, *, is_compact: bool = False) -> None:
        self._data = data
        self._position = position
        self.is_compact = is_compact

    def int8(self) -> int:
        return self._number(_INT8)

    def int16(self) -> int:
        return self._number(INT16)

    def int32(self) -> int:
        return self._number(INT32)

    def int64(self) -> int:
        return self._number(INT64)

    def uuid(self) -> UUID:
        return topic_id_of(self._take(16))

    def string(self) -> str:
        text = self.nullable_string()
        if text is None:
            raise InvalidRecordError(f"a string that must be there is null at {self._position}")
        return text

    def nullable_string(self) -> str | None:
        length = self._uvarint() - 1 if self.is_compact else self.int16()
        if length < 0:
            return None
        try:
            return self._take(length).decode()
        except UnicodeDecodeError:
            raise InvalidRecordError(f"a string before {self._position} is not UTF-8") from None

    def blob(self) -> bytes:
        """Bytes with a length before them; null is read as none."""
        return self.nullable_blob() or b""

    def nullable_blob(self) -> bytes | None:
        data = self._data
        try:
            start, end = read_span(data, self._position, len(data), is_compact=self.is_compact)
        except WireError as problem:
            raise InvalidRecordError(str(problem)) from None
        self._position = end
        return None if start is None else data[start:end]

    def array(self, read_element: Callable[[], T]) -> tuple[T, ...]:
        """The elements of an array; null is read as empty."""
        data = self._data
        try:
            length, self._position = read_array_length(
                data, self._position, len(data), is_compact=self.is_compact
            )
        except WireError as problem:
            raise InvalidRecordError(str(problem)) from None
        return tuple([read_element() for _ in range(length)])

    def tags(self) -> dict[int, bytes]:
        """The tagged fields by number: the caller picks those it knows, newer ones are no fault."""
        return {self._uvarint(): self._take(self._uvarint()) for _ in range(self._uvarint())}

    def _uvarint(self) -> int:
        try:
            value, self._position = read_uvarint(self._data, self._position, len(self._data))
        except WireError as problem:
            raise InvalidRecordError(str(problem)) from None
        return value

    def _number(self, form: Struct) -> int:
        try:
            value: int = form.unpack_from(self._data, self._position)[0]
        except error:
            raise InvalidRecordError(f"it ends inside a number at {self._position}") from None
        self._position += form.size
        return value

    def _take(self, length: int) -> bytes:
        end = self._position + length
        if end > len(self._data):
            raise InvalidRecordError(f"{length} bytes at {self._position} do not fit into it")
        taken = self._data[self._position : end]
        self._position = end
        return taken


@lru_cache(maxsize=1024)  # making a UUID costs more than the rest of an offset commit
def topic_id_of(raw: bytes) -> UUID:
    return UUID(bytes=raw)


def write_string(text: str) -> bytes:
    """A string with a two-byte length."""
    raw = text.encode()
    if len(raw) > MAX_STRING_BYTES:
        raise InvalidRecordError(f"a string of {len(raw)} bytes is over {MAX_STRING_BYTES}")
    return INT16.pack(len(raw)) + raw


def write_nullable_string(text: str | None) -> bytes:
    return NULL_STRING if text is None else write_string(text)


def write_bytes(data: bytes) -> bytes:
    """Bytes with a four-byte length."""
    return INT32.pack(len(data)) + data


def write_compact_string(text: str | None) -> bytes:
    return NULL_COMPACT if text is None else write_compact_bytes(text.encode())


def write_compact_bytes(data: bytes) -> bytes:
    return write_uvarint(len(data) + 1) + data


def write_compact_array(elements: Iterable[bytes]) -> bytes:
    """An array of elements that are encoded already."""
    encoded = list(elements)
    return write_uvarint(len(encoded) + 1) + b"".join(encoded)


def write_tag(number: int, data: bytes) -> bytes:
    """The tagged fields of a structure that has just this one."""
    return write_uvarint(1) + write_uvarint(number) + write_uvarint(len(data)) + data
