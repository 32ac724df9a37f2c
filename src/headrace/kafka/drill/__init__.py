"""The fail-over proof: a cluster under load, hurt on purpose, and the books balanced at the end.

`run_drill(cluster, Plan(...))` does it all and returns a DrillReport.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headrace.kafka.drill.plan import Plan, Scenario
    from headrace.kafka.drill.report import DrillReport
    from headrace.kafka.drill.run import run_drill

_MODULES = {"DrillReport": "report", "Plan": "plan", "Scenario": "plan", "run_drill": "run"}
__all__ = ["DrillReport", "Plan", "Scenario", "run_drill"]


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
