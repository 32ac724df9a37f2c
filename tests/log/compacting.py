"""What the tests of compaction share: keyed records in, and what is left of them out."""

from collections.abc import Iterable
from typing import Any

from tests.log.conftest import NOW_MS, Bench

from headrace.config import LogConfig
from headrace.log.compaction import plan
from headrace.log.partition_log import PartitionLog
from headrace.records.batch import BatchHeader, peek_header
from headrace.records.builder import build_batch
from headrace.records.record import Record, iter_records

COMPACTED = LogConfig(
    is_compacted=True, is_deleting=False, index_interval_bytes=200, delete_retention_ms=1000
)
Pair = tuple[bytes | None, bytes | None]


def write(bench: Bench, log: PartitionLog, *pairs: Pair, **fields: Any) -> int:
    """Append one batch of these keys and values; its base offset."""
    timestamp = fields.pop("timestamp", NOW_MS)
    records = [Record(i, timestamp + i, key, value, []) for i, (key, value) in enumerate(pairs)]
    return bench.append(log, build_batch(records, **fields))[0].base_offset


def roll(log: PartitionLog) -> None:
    """Close the active segment."""
    log.roll(NOW_MS)


def compact(log: PartitionLog, now_ms: int = NOW_MS, max_map_bytes: int | None = None) -> bool:
    """One pass over the closed segments; whether there was anything to do."""
    cleaning = plan(log, now_ms)
    if cleaning is None:
        return False
    if max_map_bytes is not None:
        cleaning.max_map_bytes = max_map_bytes
    cleaning.copy()
    assert cleaning.announce()
    cleaning.sync()
    assert cleaning.swap()
    return True


def batches(bench: Bench, log: PartitionLog, offset: int | None = None) -> list[bytes]:
    """All batches from `offset` on, by sequential reads as a consumer makes them."""
    found: list[bytes] = []
    offset = log.log_start_offset if offset is None else offset
    while data := bench.read(log, offset):
        at = 0
        while at < len(data):
            header = peek_header(data, at)
            assert header is not None
            found.append(data[at : at + header.size])
            at += header.size
            offset = header.next_offset
    return found


def headers(bench: Bench, log: PartitionLog) -> list[BatchHeader]:
    found = [peek_header(batch) for batch in batches(bench, log)]
    return [header for header in found if header is not None]


def records(bench: Bench, log: PartitionLog, offset: int | None = None) -> list[Record]:
    return [record for batch in batches(bench, log, offset) for record in iter_records(batch)]


def table(found: Iterable[Record]) -> dict[bytes, bytes]:
    """What a reader of all records ends up with: a tombstone deletes its key."""
    values: dict[bytes, bytes] = {}
    for record in found:
        if record.key is None:
            continue
        if record.value is None:
            values.pop(record.key, None)
        else:
            values[record.key] = record.value
    return values
