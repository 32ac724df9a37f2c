"""One file of a log directory as rows, in the names and the order of Kafka's DumpLogSegments.

Reads the bytes as they are and trusts nothing in them: damage becomes a row, not an exception.
"""

import mmap
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

from headrace.cli.log.dump_row import Row, json_bytes
from headrace.cli.log.offsets_decoder import decode_offsets
from headrace.errors import HeadraceError
from headrace.records.batch import (
    CURRENT_MAGIC,
    HEADER_SIZE,
    MAX_SEQUENCE,
    BatchHeader,
    crc_is_valid,
    peek_header,
)
from headrace.records.record import Record, iter_records
from headrace.records.scan import find_batch

_OFFSET_ENTRY = struct.Struct(">ii")
_TIME_ENTRY = struct.Struct(">qi")
_ABORTED_TRANSACTION = struct.Struct(">hqqqq")
_SNAPSHOT_HEAD = struct.Struct(">hIi")
_PRODUCER = struct.Struct(">qhiqiqiq")
_CONTROL_KEY = struct.Struct(">hh")
_CONTROL_VALUE = struct.Struct(">hi")
_CODEC_NAMES = ("none", "gzip", "snappy", "lz4", "zstd")
_MARKER_NAMES = ("ABORT", "COMMIT")

# Makes the fields that show a record's key and value.
_ShowData = Callable[[Record], dict[str, object]]


def dump_file(
    path: Path, *, is_deep: bool, has_data: bool, decodes_offsets: bool = False
) -> Iterator[Row]:
    """The rows of `path`; its name tells what it is. ValueError: no file of a log is called so."""
    if path.suffix in (".log", ".checkpoint"):
        show_data: _ShowData | None = _plain_data if has_data else None
        if decodes_offsets:
            show_data = decode_offsets
        return _dump_log(path, show_data, is_deep=is_deep or show_data is not None)
    if path.suffix == ".index":
        return _dump_offset_index(path)
    if path.suffix == ".timeindex":
        return _dump_time_index(path)
    if path.suffix == ".txnindex":
        return _dump_transaction_index(path)
    if path.suffix == ".snapshot":
        return _dump_snapshot(path)
    if path.name == "leader-epoch-checkpoint":
        return _dump_checkpoint(path, ("epoch", "startOffset"))
    if path.name.endswith("-checkpoint"):
        return _dump_checkpoint(path, ("topic", "partition", "offset"))
    if path.name in ("meta.properties", "partition.metadata"):
        return _dump_properties(path)
    raise ValueError(f"{path.name} is not the name of a log, an index, a snapshot or a checkpoint")


def _dump_log(path: Path, show_data: _ShowData | None, *, is_deep: bool) -> Iterator[Row]:
    with path.open("rb") as file:
        if not path.stat().st_size:
            return
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        with mapped, memoryview(mapped) as buffer:
            yield from _dump_batches(buffer, show_data, is_deep=is_deep)


def _dump_batches(
    buffer: memoryview, show_data: _ShowData | None, *, is_deep: bool
) -> Iterator[Row]:
    position, size, next_offset = 0, len(buffer), 0
    while position < size:
        header = peek_header(buffer, position)
        fault = _fault_in(header, size - position)
        if header is None or fault is not None:
            resume = find_batch(buffer, position + 1, size, next_offset)
            end = size if resume < 0 else resume
            yield _damage(fault or "cut short", position, end - position)
            position = end
            continue
        with buffer[position : position + header.size] as batch:
            is_valid = crc_is_valid(batch)
            yield _batch_row(header, position, is_valid=is_valid)
            if is_deep and is_valid:
                yield from _dump_records(batch, header, show_data)
        position += header.size
        next_offset = header.next_offset


def _fault_in(header: BatchHeader | None, available: int) -> str | None:
    if header is None:
        return f"{available} bytes are no batch"
    if header.magic != CURRENT_MAGIC:
        return f"magic {header.magic}"
    if header.size < HEADER_SIZE:
        return f"batch length {header.batch_length}"
    if header.size > available:
        return f"batch of {header.size} bytes, {available} are left"
    return None


def _batch_row(header: BatchHeader, position: int, *, is_valid: bool) -> Row:
    codec = header.codec
    fields: dict[str, object] = {
        "baseOffset": header.base_offset,
        "lastOffset": header.last_offset,
        "count": header.record_count,
        "baseSequence": header.base_sequence,
        "lastSequence": header.last_sequence,
        "producerId": header.producer_id,
        "producerEpoch": header.producer_epoch,
        "partitionLeaderEpoch": header.leader_epoch,
        "isTransactional": header.is_transactional,
        "isControl": header.is_control,
        "deleteHorizonMs": header.base_timestamp if header.has_delete_horizon else None,
        "position": position,
        _time_name(header): header.max_timestamp,
        "size": header.size,
        "magic": header.magic,
        "compresscodec": _CODEC_NAMES[codec] if codec < len(_CODEC_NAMES) else str(codec),
        "crc": header.crc,
        "isvalid": is_valid,
    }
    return Row("batch", fields, is_damage=not is_valid)


def _dump_records(
    batch: memoryview, header: BatchHeader, show_data: _ShowData | None
) -> Iterator[Row]:
    try:
        for record in iter_records(batch):
            yield Row("record", _record_fields(record, header, show_data))
    except HeadraceError as error:
        yield Row("damage", {"records": str(error), "baseOffset": header.base_offset}, True)


def _record_fields(
    record: Record, header: BatchHeader, show_data: _ShowData | None
) -> dict[str, object]:
    sequence = header.base_sequence
    if sequence >= 0:
        sequence = (sequence + record.offset - header.base_offset) & MAX_SEQUENCE
    fields: dict[str, object] = {
        "offset": record.offset,
        _time_name(header): record.timestamp,
        "keySize": -1 if record.key is None else len(record.key),
        "valueSize": -1 if record.value is None else len(record.value),
        "sequence": sequence,
        "headerKeys": [name for name, _ in record.headers],
    }
    if header.is_control:
        fields |= _control_fields(record)
    elif show_data is not None:
        fields |= show_data(record)
    return fields


def _plain_data(record: Record) -> dict[str, object]:
    return {
        "headers": [_json_header(name, value) for name, value in record.headers],
        "key": record.key,
        "payload": record.value,
    }


def _control_fields(record: Record) -> dict[str, object]:
    try:
        _, control_type = _CONTROL_KEY.unpack_from(record.key or b"")
        if control_type >= len(_MARKER_NAMES):
            return {"controlType": control_type}
        _, coordinator_epoch = _CONTROL_VALUE.unpack_from(record.value or b"")
    except struct.error:
        return {"controlType": None}
    return {
        "endTxnMarker": _MARKER_NAMES[control_type],
        "coordinatorEpoch": coordinator_epoch,
    }


def _dump_offset_index(path: Path) -> Iterator[Row]:
    base_offset = _base_offset(path)
    for relative, position in _entries(path.read_bytes(), _OFFSET_ENTRY):
        yield Row("index", {"offset": base_offset + relative, "position": position})
    yield from _leftover(path, _OFFSET_ENTRY)


def _dump_time_index(path: Path) -> Iterator[Row]:
    base_offset = _base_offset(path)
    for timestamp, relative in _entries(path.read_bytes(), _TIME_ENTRY):
        yield Row("timeindex", {"timestamp": timestamp, "offset": base_offset + relative})
    yield from _leftover(path, _TIME_ENTRY)


def _dump_transaction_index(path: Path) -> Iterator[Row]:
    names = ("version", "producerId", "firstOffset", "lastOffset", "lastStableOffset")
    for entry in _entries(path.read_bytes(), _ABORTED_TRANSACTION):
        yield Row("txnindex", dict(zip(names, entry, strict=True)))
    yield from _leftover(path, _ABORTED_TRANSACTION)


def _dump_snapshot(path: Path) -> Iterator[Row]:
    from crc32c import crc32c

    content = path.read_bytes()
    if len(content) < _SNAPSHOT_HEAD.size:
        yield _damage("no snapshot header", 0, len(content))
        return
    _, crc, count = _SNAPSHOT_HEAD.unpack_from(content)
    if crc != crc32c(content[6:]) or len(content) != _SNAPSHOT_HEAD.size + count * _PRODUCER.size:
        yield _damage("checksum or size does not fit", 0, len(content))
        return
    for entry in _PRODUCER.iter_unpack(content[_SNAPSHOT_HEAD.size :]):
        producer_id, epoch, last_sequence, last_offset, delta, timestamp, coordinator, start = entry
        fields: dict[str, object] = {
            "producerId": producer_id,
            "producerEpoch": epoch,
            "coordinatorEpoch": coordinator,
            "currentTxnFirstOffset": None if start < 0 else start,
            "lastTimestamp": timestamp,
        }
        if last_sequence >= 0:
            fields |= {
                "firstSequence": (last_sequence - delta) & MAX_SEQUENCE,
                "lastSequence": last_sequence,
                "lastOffset": last_offset,
                "offsetDelta": delta,
                "timestamp": timestamp,
            }
        yield Row("producer", fields)


def _dump_checkpoint(path: Path, names: tuple[str, ...]) -> Iterator[Row]:
    """Text: a version, a count, then one entry a line."""
    lines = path.read_text(errors="replace").splitlines()
    entries = [line.split() for line in lines[2:]]
    is_whole = len(lines) >= 2 and lines[1].isdecimal() and int(lines[1]) == len(entries)
    if not is_whole or any(len(entry) != len(names) for entry in entries):
        yield _damage("the count does not fit the lines", 0, path.stat().st_size)
    for entry in entries:
        values = [int(word) if word.lstrip("-").isdecimal() else word for word in entry]
        yield Row("checkpoint", dict(zip(names, values, strict=False)))


def _dump_properties(path: Path) -> Iterator[Row]:
    for line in path.read_text(errors="replace").splitlines():
        if line.strip() and not line.startswith("#"):
            name, _, value = line.partition("=" if "=" in line else ":")
            yield Row("property", {name.strip(): value.strip()})


def _entries(content: bytes, entry: struct.Struct) -> Iterator[tuple[int, ...]]:
    return entry.iter_unpack(content[: len(content) - len(content) % entry.size])


def _leftover(path: Path, entry: struct.Struct) -> Iterator[Row]:
    size = path.stat().st_size
    if size % entry.size:
        yield _damage("no whole entry", size - size % entry.size, size % entry.size)


def _damage(fault: str, position: int, size: int) -> Row:
    fields: dict[str, object] = {"damage": fault, "position": position, "bytes": size}
    return Row("damage", fields, is_damage=True)


def _base_offset(path: Path) -> int:
    digits = path.name.split(".", 1)[0]
    return int(digits) if digits.isdecimal() else 0


def _time_name(header: BatchHeader) -> str:
    return "LogAppendTime" if header.is_log_append_time else "CreateTime"


def _json_header(name: str, value: bytes | None) -> dict[str, object]:
    if value is None:
        return {"key": name, "value": None}
    value_name, text = json_bytes("value", value)
    return {"key": name, value_name: text}
