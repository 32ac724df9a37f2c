from headrace.records.batch import Buffer
from headrace.records.scan_fallback import Finding

CORRUPT: int
INVALID: int
BAD_RECORDS: int
MAX_TIMESTAMP: int
NO_KEY: int
TIME_OUT_OF_RANGE: int
CLAIMS_APPEND_TIME: int
MAX_LISTED_FAULTS: int

def crc32c(buffer: Buffer, /) -> int: ...
def check_batch(
    batch: Buffer, needs_keys: bool, earliest: int, latest: int, /
) -> Finding | None: ...
def check_records(
    records: Buffer,
    count: int,
    base_timestamp: int,
    claims_append_time: bool,
    needs_keys: bool,
    earliest: int,
    latest: int,
    /,
) -> Finding: ...
def scan_batches(buffer: Buffer, start: int, end: int, /) -> tuple[int, str | None]: ...
def find_batch(buffer: Buffer, start: int, end: int, min_offset: int, /) -> int: ...
def find_record(
    records: Buffer,
    count: int,
    base_timestamp: int,
    base_offset: int,
    is_append_time: bool,
    timestamp: int,
    start_offset: int,
    /,
) -> tuple[int, int] | str | None: ...
def find_newest(
    records: Buffer,
    count: int,
    base_timestamp: int,
    base_offset: int,
    is_append_time: bool,
    start_offset: int,
    /,
) -> tuple[int, int] | str | None: ...
def find_header(
    buffer: Buffer, start: int, timestamp: int, start_offset: int, /
) -> tuple[int, bool, int]: ...
def find_disorder(entries: Buffer, /) -> int: ...
