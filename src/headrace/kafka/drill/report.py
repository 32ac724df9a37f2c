"""What a drill found, as facts: for the verdict, the table, the JSON file and the plot."""

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headrace.kafka.drill.acks import Gap, Second, Wait
from headrace.kafka.drill.election import BEYOND_EXCUSE, FAR_BEYOND, Timeouts, WaitLimit
from headrace.kafka.drill.ledger import Balance, LiveReading
from headrace.kafka.drill.machine import BUSY_SHARE, CALM_WAIT_S
from headrace.kafka.drill.plan import Plan, Scenario
from headrace.kafka.drill.timeline import Event
from headrace.kafka.errors import DrillError

FORMAT_VERSION = 1


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """The cluster a drill ran on."""

    name: str
    version: str
    brokers: int
    controllers: int  # nodes that are controllers, also those that are brokers as well
    is_combined: bool
    timeouts: Timeouts


@dataclass(frozen=True, slots=True)
class Resync:
    """A follower that was away while much was written, and how it came back.

    `jvm_start_s` is from the start of its process to Kafka's "started" line, `catch_up_s` from
    there until it was in every ISR again. `missed_bytes` are the messages' own.
    """

    node: int
    messages: int
    missed_bytes: int
    write_s: float
    jvm_start_s: float
    catch_up_s: float

    @property
    def back_s(self) -> float:
        """From the start of the process to "back in the ISR"."""
        return self.jvm_start_s + self.catch_up_s

    @property
    def mb_per_s(self) -> float:
        """What it copied, over the whole time: a broker fetches before it says "started"."""
        return self.missed_bytes / 1e6 / max(self.back_s, 1e-9)

    @property
    def written_per_s(self) -> float:
        """Messages a second while they were written."""
        return self.messages / max(self.write_s, 1e-9)


@dataclass(frozen=True, slots=True)
class ScenarioReport:
    """One scenario: what happened, and the longest that a publisher waited."""

    scenario: Scenario
    title: str
    nodes: tuple[int, ...]  # those that were hurt
    start_s: float
    fault_s: float
    end_s: float
    undisturbed_s: float  # the longest wait just before the fault
    others_cpu_share: float | None  # of all CPU time during the longest wait; None: not known
    longest_wait: Wait
    longest_gap: Gap
    limit: WaitLimit
    acknowledged: int
    failed: int
    events: tuple[Event, ...]
    resync: Resync | None = None

    @property
    def is_within_limit(self) -> bool:
        return self.longest_wait.seconds <= self.limit.seconds

    @property
    def is_far_beyond_limit(self) -> bool:
        return self.longest_wait.seconds > self.limit.seconds * FAR_BEYOND

    @property
    def is_beyond_excuse(self) -> bool:
        """Whether it is too long for any machine, however busy."""
        return self.longest_wait.seconds > self.limit.seconds * BEYOND_EXCUSE

    @property
    def busyness(self) -> str:
        """What kept the machine busy with other things; empty when it was not.

        Waits before the fault may be the cluster's own: they count only where nobody could look
        at the CPU.
        """
        if self.others_cpu_share is not None:
            is_busy = self.others_cpu_share >= BUSY_SHARE
            return f"others took {self.others_cpu_share:.0%} of its CPU" if is_busy else ""
        if self.undisturbed_s > CALM_WAIT_S:
            return f"waits were {self.undisturbed_s:.1f} s without any fault"
        return ""


@dataclass(frozen=True, slots=True)
class Check:
    """One promise and whether it was kept; `text` has the figures."""

    name: str
    is_kept: bool
    text: str


@dataclass(frozen=True, slots=True)
class DrillReport:
    """A whole drill. `checks` are what the verdict is made of."""

    cluster: ClusterFacts
    plan: Plan
    topic: str
    started_at: str  # ISO 8601, UTC
    seconds: float
    scenarios: tuple[ScenarioReport, ...]
    course: tuple[Second, ...]
    balance: Balance
    live: LiveReading
    checks: tuple[Check, ...]

    @property
    def is_passed(self) -> bool:
        return all(check.is_kept for check in self.checks)

    @property
    def verdict(self) -> str:
        """PASS or FAIL, with what it rests on."""
        if self.is_passed:
            return f"PASS: {'; '.join(check.text for check in self.checks)}"
        return f"FAIL: {'; '.join(check.text for check in self.checks if not check.is_kept)}"

    def as_json(self) -> dict[str, Any]:
        """Every fact, in types that JSON has."""
        facts: dict[str, Any] = _plain(self)
        facts["format"] = FORMAT_VERSION
        facts["is_passed"], facts["verdict"] = self.is_passed, self.verdict
        for entry, scenario in zip(facts["scenarios"], self.scenarios, strict=True):
            entry["limit"]["seconds"] = scenario.limit.seconds
            entry["is_within_limit"] = scenario.is_within_limit
            entry["is_far_beyond_limit"] = scenario.is_far_beyond_limit
            entry["is_beyond_excuse"] = scenario.is_beyond_excuse
            entry["busyness"] = scenario.busyness
            if scenario.resync is not None:
                entry["resync"]["back_s"] = scenario.resync.back_s
                entry["resync"]["mb_per_s"] = scenario.resync.mb_per_s
                entry["resync"]["written_per_s"] = scenario.resync.written_per_s
        return facts

    def write_json(self, path: Path) -> None:
        """Write all facts to a file; DrillError where that cannot be."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(self.as_json(), indent=2) + "\n", "utf-8")
        except OSError as error:
            raise DrillError(f"cannot write {path}: {error.strerror}") from error


def _plain(value: Any) -> Any:
    """Dataclasses and named tuples as objects, other sequences as lists, times to the ms."""
    if dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value)]
        return {name: _plain(getattr(value, name)) for name in names}
    if hasattr(value, "_fields"):
        return {name: _plain(getattr(value, name)) for name in value._fields}
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    if isinstance(value, float):
        return round(value, 3)
    return value
