"""What a broker's settings allow a classic group."""

from typing import NamedTuple


class ClassicLimits(NamedTuple):
    """Kafka's group.* settings, by their meaning."""

    min_session_timeout_ms: int
    max_session_timeout_ms: int
    max_size: int
    initial_rebalance_delay_ms: int
