"""What a broker's settings allow a group, of either protocol."""

from typing import NamedTuple

_INT32_MAX = 2**31 - 1


class ClassicLimits(NamedTuple):
    """Kafka's group.* settings, by their meaning."""

    min_session_timeout_ms: int
    max_session_timeout_ms: int
    max_size: int
    initial_rebalance_delay_ms: int


class ConsumerLimits(NamedTuple):
    """The `group.consumer.*` settings, with Kafka's defaults."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    max_size: int = _INT32_MAX
    assignors: tuple[str, ...] = ("uniform", "range")  # the first is the default
    migration_policy: str = "bidirectional"
    classic_max_size: int = _INT32_MAX  # group.max.size: what a group may have to become classic
    assignment_interval_ms: int = 1_000  # the least time between two target assignments

    @property
    def may_upgrade(self) -> bool:
        """Whether a classic group may become one of the new protocol while it has members."""
        return self.migration_policy.lower() in ("upgrade", "bidirectional")

    @property
    def may_downgrade(self) -> bool:
        """Whether a group may go back to the classic protocol while it has members."""
        return self.migration_policy.lower() in ("downgrade", "bidirectional")
