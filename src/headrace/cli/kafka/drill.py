"""`headrace kafka drill`: hurt a running cluster on purpose and prove that nothing is lost."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli.endings import EXIT_FAILED, UsageError, tell
from headrace.cli.interruption import Interruption
from headrace.cli.kafka.options import Dir, Name, open_cluster
from headrace.cli.terminal import NONE, print_facts, print_heading, print_table
from headrace.kafka.cluster_names import DEFAULT_NAME
from headrace.kafka.drill.plan import Plan, Scenario
from headrace.kafka.errors import DrillError

if TYPE_CHECKING:
    from headrace.kafka.drill.report import DrillReport, ScenarioReport

EPILOG = "Example: headrace kafka drill --scenario leader --output drill"
_DEFAULTS = Plan()


def drill(
    name: Name = DEFAULT_NAME,
    dir: Dir = None,
    scenario: Annotated[
        list[Scenario] | None,
        typer.Option(help="What to do; may be repeated, in any order.", show_default="all"),
    ] = None,
    rate: Annotated[
        int, typer.Option(metavar="N", min=1, help="Messages a second, all publishers together.")
    ] = _DEFAULTS.rate,
    message_bytes: Annotated[
        int, typer.Option(metavar="N", help="Size of a message.")
    ] = _DEFAULTS.message_bytes,
    publishers: Annotated[
        int, typer.Option(metavar="N", min=1, help="Number of publishers.")
    ] = _DEFAULTS.publishers,
    partitions: Annotated[
        int, typer.Option(metavar="N", min=1, help="Partitions of the drill's topic.")
    ] = _DEFAULTS.partitions,
    resync_messages: Annotated[
        int,
        typer.Option(metavar="N", min=1, help="Messages that a stopped follower is to miss."),
    ] = _DEFAULTS.resync_messages,
    json: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write every fact to this file.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw acknowledgements and waits as PNG.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write drill.json and drill.png into this directory."),
    ] = None,
    keep_topic: Annotated[
        bool, typer.Option("--keep-topic", help="Leave the drill's topics for a closer look.")
    ] = False,
) -> None:
    """Prove fail-over: kill, pause and restart nodes under load, then balance the books.

    The cluster must run, have three brokers or more and be whole; afterwards it is as it was.
    Exit code 0 when every acknowledged message is there once and in order; 1 otherwise, and when
    a publisher waited more than twice as long as elections allow on a machine that was not busy,
    or more than ten times as long on any.
    """
    plan = _plan(
        tuple(scenario or Scenario),
        rate=rate,
        message_bytes=message_bytes,
        publishers=publishers,
        partitions=partitions,
        resync_messages=resync_messages,
        is_topic_kept=keep_topic,
    )
    json_files = [path for path in (json, output and output / "drill.json") if path]
    plot_files = _plot_files(plot, output)
    for path in (*json_files, *plot_files):
        _check_target(path)
    report = _run(name, dir, plan)
    _print_report(report)
    _write(report, json_files, plot_files)
    if not report.is_passed:
        raise typer.Exit(EXIT_FAILED)


def _plan(
    scenarios: tuple[Scenario, ...],
    *,
    rate: int,
    message_bytes: int,
    publishers: int,
    partitions: int,
    resync_messages: int,
    is_topic_kept: bool,
) -> Plan:
    try:
        return Plan(
            scenarios=scenarios,
            rate=rate,
            message_bytes=message_bytes,
            publishers=publishers,
            partitions=partitions,
            resync_messages=resync_messages,
            is_topic_kept=is_topic_kept,
        )
    except DrillError as error:
        raise UsageError(str(error)) from error


def _plot_files(plot: Path | None, output: Path | None) -> list[Path]:
    from headrace.kafka.drill.plot import can_plot, needs

    files = [path for path in (plot, output and output / "drill.png") if path]
    if files and not can_plot():
        if plot is not None:  # asked for by name: better said now than after ten minutes
            raise UsageError(f"--plot {plot}: {needs()}")
        tell(f"no drill.png: {needs()}")
        return []
    return files


def _check_target(path: Path) -> None:
    """Find out now, not at the end, that a file cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab"):
            pass
        if path.stat().st_size == 0:
            path.unlink()
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error


def _run(name: str, directory: Path | None, plan: Plan) -> "DrillReport":
    from headrace.cli.kafka.drill_view import DrillView
    from headrace.kafka.drill.run import run_drill

    cluster = open_cluster(name, directory)
    with Interruption() as interruption, DrillView() as view, _told(interruption):
        return run_drill(
            cluster,
            plan,
            on_event=view.take_event,
            on_status=view.take_status,
            on_scenario=lambda report: view.above(lambda: _print_scenario(report)),
            is_interrupted=_telling(interruption),
        )


def _telling(interruption: Interruption) -> Callable[[], bool]:
    """Whether a signal has come; says once what happens now, since that takes seconds."""
    is_told = False

    def is_interrupted() -> bool:
        nonlocal is_told
        if interruption and not is_told:
            is_told = True
            tell("ending: the nodes are brought back; Ctrl-C again leaves them as they are")
        return bool(interruption)

    return is_interrupted


@contextlib.contextmanager
def _told(interruption: Interruption) -> Iterator[None]:
    """Ctrl-C ends it with the exit code of its signal, once the nodes are back."""
    try:
        yield
    except KeyboardInterrupt:
        tell("interrupted: the nodes run again, nothing is proven")
        raise typer.Exit(interruption.exit_code) from None


def _print_scenario(report: "ScenarioReport") -> None:
    nodes = ", ".join(map(str, report.nodes))
    print_heading(f"{report.title} (node{'s' if len(report.nodes) > 1 else ''} {nodes})")
    for event in report.events[1:]:  # the first says that the scenario begins
        print(f"  {event.at_s - report.fault_s:+8.2f} s  {event.kind:<10}  {event.text}")
    print(flush=True)


def _print_report(report: "DrillReport") -> None:
    columns = (
        *("scenario", "nodes", "took", "longest wait", "allowed", "others' CPU"),
        *("longest gap", "acked"),
    )
    print_table(
        columns,
        [
            (
                each.title,
                ",".join(map(str, each.nodes)),
                f"{each.end_s - each.start_s:.1f} s",
                f"{each.longest_wait.seconds:.2f} s",
                f"{each.limit.seconds:.1f} s",
                NONE if each.others_cpu_share is None else f"{each.others_cpu_share:.0%}",
                f"{each.longest_gap.seconds:.2f} s" if each.longest_gap.seconds else NONE,
                f"{each.acknowledged:,}",
            )
            for each in report.scenarios
        ],
        numbers=set(columns) - {"scenario", "nodes"},
    )
    print()
    balance, live = report.balance, report.live
    facts: dict[str, object] = {
        "sent": f"{balance.sent:,}",
        "acknowledged": f"{balance.acknowledged:,}",
        "failed": f"{balance.failed:,}",
        "lost": f"{balance.lost:,}",
        "duplicated": f"{balance.duplicated:,}",
        "reordered": f"{balance.reordered:,}",
        "read live": f"{live.read:,}, missed {live.missed:,}, read again {live.read_again:,}",
        "read at the end": f"{balance.stored:,}",
    }
    for each in report.scenarios:
        if (resync := each.resync) is not None:
            facts["resync"] = (
                f"node {resync.node} missed {resync.messages:,} messages "
                f"({resync.missed_bytes / 1e6:,.1f} MB, written at {resync.written_per_s:,.0f}/s) "
                f"and was back in the ISR after {resync.back_s:.1f} s: JVM "
                f"{resync.jvm_start_s:.1f} s, catching up {resync.catch_up_s:.1f} s, "
                f"{resync.mb_per_s:.1f} MB/s"
            )
    print_facts(facts)
    print()
    print(report.verdict)


def _write(report: "DrillReport", json_files: list[Path], plot_files: list[Path]) -> None:
    from headrace.kafka.drill.plot import write_plot

    for path in json_files:
        report.write_json(path)
    for path in plot_files:
        write_plot(report, path)
