"""Bytes as they are: the columns of a record, nothing decoded, nothing to go wrong."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Raw:
    """Gives key, value, topic, partition, offset, timestamp, timestampType and headers."""

    @property
    def can_fail(self) -> bool:
        """Whether `decode` adds `_error`: never."""
        return False

    def describe(self) -> str:
        """A few words for people."""
        return "raw bytes"

    def decode(self, records: "DataFrame") -> "DataFrame":
        """The records themselves."""
        return records

    def explain(self, value: bytes | None) -> str:
        """Nobody asks: every value is good."""
        return "nothing is wrong with it"
