"""The scanner that checks batches: the one in C where it was built, its Python twin elsewhere."""

try:
    from headrace.records._scan import (
        CORRUPT,
        INVALID,
        check_batch,
        check_records,
        find_batch,
        scan_batches,
    )

    IS_NATIVE = True
except ImportError:
    from headrace.records.scan_fallback import (
        CORRUPT,
        INVALID,
        check_batch,
        check_records,
        find_batch,
        scan_batches,
    )

    IS_NATIVE = False

__all__ = [
    "CORRUPT",
    "INVALID",
    "IS_NATIVE",
    "check_batch",
    "check_records",
    "find_batch",
    "scan_batches",
]
