"""`headrace pipeline status` and `stop`: the runs of this machine."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli.endings import tell
from headrace.cli.pipeline.options import StateDir, run_names, state_dir_or_default
from headrace.cli.terminal import NONE, Json, print_facts, print_heading, print_json, print_table

if TYPE_CHECKING:
    from headrace.pipelines.running.run_state import RunStatus

_STOP_TIMEOUT_S = 120.0

RunName = Annotated[
    str, typer.Argument(metavar="NAME", help="Name of the run.", autocompletion=run_names)
]
_COLUMNS = ("run", "state", "pid", "batches", "rows", "rows/s", "lag", "dead letters", "updated")


def status(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="Only this run, in full.", autocompletion=run_names),
    ] = None,
    is_json: Json = False,
    state_dir: StateDir = None,
) -> None:
    """Show the runs of this machine, or one of them with its partitions."""
    from headrace.pipelines.running.run_state import all_runs, find_run

    place = state_dir_or_default(state_dir)
    found = all_runs(place) if name is None else [find_run(place, name)]
    if is_json:
        for each in found:
            print_json(each.as_json())
    elif name is not None:
        _print_run(found[0])
    elif found:
        print_table(_COLUMNS, map(_row, found), numbers=_COLUMNS[2:8])
    else:
        tell(f"no pipeline has run yet in {place}")


def stop(
    name: RunName,
    timeout: Annotated[
        float,
        typer.Option(metavar="SECONDS", min=0.1, help="How long to wait for its batch to end."),
    ] = _STOP_TIMEOUT_S,
    is_json: Json = False,
    state_dir: StateDir = None,
) -> None:
    """End a run after the batch it has in hand, and wait for that."""
    from headrace.pipelines.running.run_state import stop_run

    ended = stop_run(state_dir_or_default(state_dir), name, timeout)
    if is_json:
        print_json(ended.as_json())
    else:
        rows = (ended.progress or {}).get("rows", 0)
        print(f"run {name} has {ended.state} after {rows:,} rows")


def _row(each: "RunStatus") -> tuple[object, ...]:
    progress = each.progress or {}
    return (
        each.name,
        each.state,
        each.process.pid if each.is_alive else NONE,
        progress.get("batches", NONE),
        _number(progress.get("rows")),
        _number(progress.get("rows_per_s")),
        _number(progress.get("lag")),
        _number(progress.get("dead_letters")),
        _clock(each.updated_at),
    )


def _print_run(each: "RunStatus") -> None:
    print_heading(f"{each.name}: {each.state}")
    entry = each.as_json()
    progress = each.progress or {}
    hidden = ("name", "state", "progress", "is_alive", "sinks")
    facts = {key: value for key, value in entry.items() if key not in hidden and value is not None}
    facts["sinks"] = ", ".join(each.run.get("sinks", ()))
    figures = {
        key.replace("_", " "): _number(value)
        for key, value in progress.items()
        if isinstance(value, int | float) and key not in _TIMES
    }
    print_facts({key.replace("_", " "): value for key, value in facts.items()} | figures)
    if partitions := progress.get("partitions"):
        print()
        columns = ("topic", "partition", "offset", "end", "lag")
        rows = [[_cell(part[column]) for column in columns] for part in partitions]
        print_table(columns, rows, numbers=columns[1:])


_TIMES = ("last_batch_at", "running_since", "bus_unreachable_since")


def _cell(value: object) -> object:
    return NONE if value is None else value


def _number(value: float | None) -> str:
    if value is None:
        return NONE
    return f"{value:,.1f}" if isinstance(value, float) and 0 < value < 10 else f"{value:,.0f}"


def _clock(text: str | None) -> str:
    if text is None:
        return NONE
    return datetime.fromisoformat(text).astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")
