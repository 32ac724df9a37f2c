"""How a pipeline is run, as opposed to what it does."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import platformdirs

from headrace.pipelines.errors import PipelineDefinitionError
from headrace.pipelines.spark.settings import LOCAL_MASTER

STATE_VARIABLE = "HEADRACE_STATE_DIR"
# A broker that is replaced, or a machine that restarts, is back within minutes; after ten, a
# person had better look.
BUS_TIMEOUT_S = 600.0
# A failure that five tries in a row meet, over about half a minute, will meet the sixth.
MAX_RESTARTS = 5
FIRST_BACK_OFF_S, MOST_BACK_OFF_S = 1.0, 16.0

CONTINUOUS, AVAILABLE_NOW = "continuous", "available-now"
_INTERVAL = re.compile(r"(\d+)\s*(ms|s|m|h)")
_SPARK_UNITS = {"ms": "milliseconds", "s": "seconds", "m": "minutes", "h": "hours"}
# A directory, a consumer group and a Prometheus label have this name.
_RUN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")


@dataclass(frozen=True, slots=True)
class Trigger:
    """When a batch starts: at once after the one before, at an interval, or until none is left."""

    text: str = CONTINUOUS

    def __post_init__(self) -> None:
        if self.text in (CONTINUOUS, AVAILABLE_NOW):
            return
        match = _INTERVAL.fullmatch(self.text)
        if match is None or int(match[1]) == 0:
            raise PipelineDefinitionError(
                f"trigger {self.text}: write {CONTINUOUS}, {AVAILABLE_NOW} or an interval "
                "such as 500ms, 30s, 5m or 1h"
            )

    @property
    def is_available_now(self) -> bool:
        """Whether the run ends when it has what was there at its start."""
        return self.text == AVAILABLE_NOW

    def spark_arguments(self) -> dict[str, Any]:
        """What `DataStreamWriter.trigger` takes."""
        if self.is_available_now:
            return {"availableNow": True}
        match = _INTERVAL.fullmatch(self.text)
        if match is None:
            return {"processingTime": "0 seconds"}
        return {"processingTime": f"{match[1]} {_SPARK_UNITS[match[2]]}"}


def default_state_dir() -> Path:
    """Where runs keep their state: HEADRACE_STATE_DIR, or the platform's place for such things."""
    return Path(os.environ.get(STATE_VARIABLE) or platformdirs.user_state_dir("headrace"))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """One run. `name` is its directory, its consumer group and its label in the metrics."""

    name: str
    master: str = LOCAL_MASTER
    conf: Mapping[str, str] = field(default_factory=dict)
    trigger: Trigger = Trigger()
    # A path or a URI that Hadoop knows; None: in the state directory.
    checkpoint: str | None = None
    state_dir: Path = field(default_factory=default_state_dir)
    # None: the pipeline's own, or `<pipeline>.dead-letters`.
    dead_letter_topic: str | None = None
    # What to do when the bus has another log than the checkpoint has read: fail, same or anew.
    on_other_log: str = "fail"
    # Whether the sinks may be others than those of the checkpoint's runs before.
    may_change_sinks: bool = False
    metrics_port: int | None = None
    metrics_host: str = "127.0.0.1"
    bus_timeout_s: float = BUS_TIMEOUT_S
    max_restarts: int = MAX_RESTARTS
    # Starts sooner and runs slower: for tests.
    is_quick: bool = False

    def __post_init__(self) -> None:
        if not _RUN_NAME.fullmatch(self.name):
            raise PipelineDefinitionError(
                f"run name {self.name!r}: write up to 200 letters, digits, dots, dashes and "
                "underscores, a letter or digit first"
            )
