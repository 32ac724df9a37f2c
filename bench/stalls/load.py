"""What a load is: how it is made ready, and what it does while an innocent client is timed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from bench.stalls.offenders import CulpritAccount
from bench.stalls.testbed import Testbed

Attack = Callable[[CulpritAccount], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class StallLoad:
    """One row of the table. `prepare` is not measured; the attack that it returns is."""

    name: str
    title: str
    prepare: Callable[[Testbed], Attack]
    # What a culprit may be told, by Kafka's names; whether its connection may be closed.
    answers: frozenset[str] = frozenset({"NONE"})
    may_be_closed: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)  # of both brokers
    slow_sync_ms: int = 0  # what each fdatasync takes longer; Kafka then syncs as headrace does
