"""From settings to the few values a log goes by, with the broker's settings behind a topic's."""

from collections.abc import Mapping
from typing import Protocol

from headrace.config import LogConfig
from headrace.settings.catalogue import TOPIC
from headrace.settings.values import Value

_MINUTE_MS = 60_000
_HOUR_MS = 60 * _MINUTE_MS

# The broker's settings behind a topic's time, the strongest first, with their unit.
_TIMES_MS = {
    "retention.ms": (
        ("log.retention.ms", 1),
        ("log.retention.minutes", _MINUTE_MS),
        ("log.retention.hours", _HOUR_MS),
    ),
    "segment.ms": (("log.roll.ms", 1), ("log.roll.hours", _HOUR_MS)),
    "segment.jitter.ms": (("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", _HOUR_MS)),
    "flush.ms": (("log.flush.interval.ms", 1), ("log.flush.scheduler.interval.ms", 1)),
}


class BrokerValues(Protocol):
    """What is asked of the broker's settings here."""

    def __getitem__(self, name: str, /) -> Value: ...


def topic_defaults(broker: BrokerValues) -> dict[str, Value]:
    """Return what a topic without overrides takes from the broker's settings."""
    return {
        name: _time_ms(broker, name) if name in _TIMES_MS else broker[setting.broker_name]
        for name, setting in TOPIC.items()
        if setting.broker_name is not None
    }


def make_log_config(values: Mapping[str, Value]) -> LogConfig:
    """Return the log's view of a topic's effective values."""

    def number(name: str) -> int:
        value = values[name]
        assert isinstance(value, int), name
        return value

    dirty_ratio = values["min.cleanable.dirty.ratio"]
    assert isinstance(dirty_ratio, int | float)
    policies = values["cleanup.policy"]
    assert isinstance(policies, list)
    internal_segment_bytes = values["internal.segment.bytes"]
    return LogConfig(
        segment_bytes=number(
            "segment.bytes" if internal_segment_bytes is None else "internal.segment.bytes"
        ),
        segment_ms=number("segment.ms"),
        segment_jitter_ms=number("segment.jitter.ms"),
        segment_index_bytes=number("segment.index.bytes"),
        index_interval_bytes=number("index.interval.bytes"),
        retention_ms=_unlimited_as_none(number("retention.ms")),
        retention_bytes=_unlimited_as_none(number("retention.bytes")),
        file_delete_delay_ms=number("file.delete.delay.ms"),
        flush_messages=number("flush.messages"),
        flush_ms=number("flush.ms"),
        max_message_bytes=number("max.message.bytes"),
        is_compacted="compact" in policies,
        min_cleanable_dirty_ratio=dirty_ratio,
        delete_retention_ms=number("delete.retention.ms"),
        is_deleting="delete" in policies,
        is_log_append_time=values["message.timestamp.type"] == "LogAppendTime",
        timestamp_before_max_ms=number("message.timestamp.before.max.ms"),
        timestamp_after_max_ms=number("message.timestamp.after.max.ms"),
        preallocate=values["preallocate"] is True,
    )


def _time_ms(broker: BrokerValues, name: str) -> int:
    for broker_name, unit_ms in _TIMES_MS[name]:
        value = broker[broker_name]
        if isinstance(value, int):
            # Any negative retention is "for ever" to Kafka, whatever the unit.
            return max(value * unit_ms, -1) if name == "retention.ms" else value * unit_ms
    raise AssertionError(f"{name} has a default")


def _unlimited_as_none(value: int) -> int | None:
    return None if value < 0 else value
