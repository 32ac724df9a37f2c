r"""Rows as tab-separated text: what PostgreSQL's COPY and MariaDB's LOAD DATA both read.

Null is `\N`; backslash, tab, newline and carriage return in a value are written `\\ \t \n \r`.
The text is made by Arrow column by column: no Python object per value.
"""

import binascii
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

NULL = "\\N"
_ESCAPES = (("\\", "\\\\"), ("\t", "\\t"), ("\n", "\\n"), ("\r", "\\r"))
# One piece of text stays below Arrow's 2 GiB for a string column, by far.
MAX_PIECE_BYTES = 64 * 1024 * 1024
_MAX_PIECE_ROWS = 64 * 1024


def text_of(rows: pa.Table, binary_prefix: str) -> Iterator[memoryview]:
    """`rows` as lines, in pieces. Bytes become `binary_prefix` and hexadecimal digits."""
    if not rows.num_rows:
        return
    row_bytes = max(1, rows.nbytes // rows.num_rows)
    piece_rows = max(1, min(_MAX_PIECE_ROWS, MAX_PIECE_BYTES // row_bytes))
    for start in range(0, rows.num_rows, piece_rows):
        piece = rows.slice(start, piece_rows)
        columns = [_texts(column.combine_chunks(), binary_prefix) for column in piece.columns]
        lines = pc.binary_join_element_wise(*columns, "\t")
        # Joining with an empty second text appends the separator: the line's end.
        lines = pc.binary_join_element_wise(lines, "", "\n")
        offsets = np.frombuffer(lines.buffers()[1], np.int32)[lines.offset :]
        data = memoryview(lines.buffers()[2])
        yield data[offsets[0] : offsets[len(lines)]]


def _texts(values: pa.Array, binary_prefix: str) -> pa.Array:
    if pa.types.is_binary(values.type):
        values = _hexadecimal(values)
        if binary_prefix:
            values = pc.binary_join_element_wise(binary_prefix, values, "")
    elif pa.types.is_boolean(values.type):
        values = values.cast(pa.int8()).cast(pa.string())
    elif pa.types.is_string(values.type):
        values = _escaped(values)
    else:
        values = values.cast(pa.string())
    return values.fill_null(NULL) if values.null_count else values


def _escaped(values: pa.Array) -> pa.Array:
    data = _bytes_of(values)
    # Most columns have none of these: two passes over the bytes are cheaper than four searches.
    if not ((data == 0x5C).any() or (data < 0x0E).any()):
        return values
    for character, written in _ESCAPES:
        values = pc.replace_substring(values, character, written)
    return values


def _hexadecimal(values: pa.Array) -> pa.Array:
    if not len(values) or values.buffers()[2] is None:
        return values.cast(pa.string())  # all null or all empty
    offsets = np.frombuffer(values.buffers()[1], np.int32)
    offsets = offsets[values.offset : values.offset + len(values) + 1]
    data = memoryview(values.buffers()[2])[offsets[0] : offsets[-1]]
    doubled = ((offsets - offsets[0]) * 2).astype(np.int32)
    digits = pa.py_buffer(binascii.hexlify(data))
    texts = pa.StringArray.from_buffers(len(values), pa.py_buffer(doubled.tobytes()), digits)
    return pc.if_else(values.is_valid(), texts, None) if values.null_count else texts


def _bytes_of(values: pa.Array) -> np.ndarray:
    """The bytes of all strings in `values`, one after the other."""
    if not len(values) or values.buffers()[2] is None:
        return np.empty(0, np.uint8)
    offsets = np.frombuffer(values.buffers()[1], np.int32)
    start, end = offsets[values.offset], offsets[values.offset + len(values)]
    return np.frombuffer(values.buffers()[2], np.uint8)[start:end]
