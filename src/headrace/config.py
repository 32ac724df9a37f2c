"""How one partition's log behaves: the few typed values the hot paths read.

Built by `headrace.settings` from Kafka's setting names; everything below
`settings` sees only these frozen values.
"""

from dataclasses import dataclass

MIB = 1024 * 1024
DAY_MS = 24 * 3_600_000
LONG_MAX = 2**63 - 1
LONG_MIN = -(2**63)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """How one partition's log is cut, flushed, aged and checked. Defaults are Kafka's."""

    segment_bytes: int = 1024 * MIB
    segment_ms: int = 7 * DAY_MS
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10 * MIB
    index_interval_bytes: int = 4096
    retention_ms: int | None = 7 * DAY_MS  # None keeps everything
    retention_bytes: int | None = None  # None keeps everything
    file_delete_delay_ms: int = 60_000
    flush_messages: int = LONG_MAX
    flush_ms: int = LONG_MAX
    max_message_bytes: int = MIB + 12
    is_compacted: bool = False
    min_cleanable_dirty_ratio: float = 0.5
    delete_retention_ms: int = DAY_MS
    is_deleting: bool = True
    is_log_append_time: bool = False
    timestamp_before_max_ms: int = LONG_MAX
    timestamp_after_max_ms: int = 3_600_000
    preallocate: bool = False
