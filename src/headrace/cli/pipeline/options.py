"""What the commands of `headrace pipeline` share: options and completion."""

from pathlib import Path
from typing import Annotated

import typer

StateDir = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        envvar="HEADRACE_STATE_DIR",
        help="Where runs keep their state.",
        show_default="the platform's",
    ),
]


def state_dir_or_default(given: Path | None) -> Path:
    """The directory that was named, or the default."""
    from headrace.pipelines.running.settings import default_state_dir

    return given or default_state_dir()


def pipeline_names(incomplete: str) -> list[str]:
    """Names the shell completes: pipelines that can be found."""
    try:
        from headrace.pipelines.registry import all_pipelines

        names = [each.name for each in all_pipelines()]
    except Exception:  # completion must never get in the way
        return []
    return [name for name in names if name.startswith(incomplete)]


def run_names(incomplete: str) -> list[str]:
    """Names the shell completes: runs of this machine."""
    try:
        from headrace.pipelines.running.run_state import all_runs

        names = [each.name for each in all_runs(state_dir_or_default(None))]
    except Exception:
        return []
    return [name for name in names if name.startswith(incomplete)]
