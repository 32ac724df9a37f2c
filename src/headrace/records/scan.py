"""The scanner that checks batches: the one in C where it was built, its Python twin elsewhere."""

try:
    from headrace.records._scan import (
        CLAIMS_APPEND_TIME,
        CORRUPT,
        INVALID,
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
        CLAIMS_APPEND_TIME,
        CORRUPT,
        INVALID,
        NO_KEY,
        TIME_OUT_OF_RANGE,
        check_batch,
        check_records,
        find_batch,
        scan_batches,
    )

    IS_NATIVE = False

__all__ = [
    "CLAIMS_APPEND_TIME",
    "CORRUPT",
    "INVALID",
    "IS_NATIVE",
    "NO_KEY",
    "TIME_OUT_OF_RANGE",
    "check_batch",
    "check_records",
    "find_batch",
    "scan_batches",
]
