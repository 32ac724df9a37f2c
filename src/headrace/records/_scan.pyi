from headrace.records.batch import Buffer

CORRUPT: int
INVALID: int

def crc32c(buffer: Buffer, /) -> int: ...
def check_batch(batch: Buffer, needs_keys: bool, /) -> tuple[int, str] | None: ...
def check_records(records: Buffer, count: int, needs_keys: bool, /) -> str | None: ...
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
