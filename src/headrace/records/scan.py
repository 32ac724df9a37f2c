"""The scanner that checks batches: the one in C where it was built, its Python twin elsewhere."""

try:
    from headrace.records._scan import (
        BAD_RECORDS,
        CORRUPT,
        INVALID,
        MAX_TIMESTAMP,
        NO_KEY,
        TIME_OUT_OF_RANGE,
        check_batch,
        check_records,
        find_batch,
        scan_batches,
    )

    IS_NATIVE = True
except ImportError:
    from headrace.records.scan_fallback import (
        BAD_RECORDS,
        CORRUPT,
        INVALID,
        MAX_TIMESTAMP,
        NO_KEY,
        TIME_OUT_OF_RANGE,
        check_batch,
        check_records,
        find_batch,
        scan_batches,
    )

    IS_NATIVE = False

__all__ = [
    "BAD_RECORDS",
    "CORRUPT",
    "INVALID",
    "IS_NATIVE",
    "MAX_TIMESTAMP",
    "NO_KEY",
    "TIME_OUT_OF_RANGE",
    "check_batch",
    "check_records",
    "find_batch",
    "scan_batches",
]
