"""`headrace pipeline`: what pipelines there are, and those that run."""

import contextlib
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli.pipeline import dead_letters, init, run, setup, status
from headrace.cli.pipeline.options import (
    StateDir,
    pipeline_names,
    state_dir_or_default,
)
from headrace.cli.terminal import (
    NONE,
    Json,
    help_style,
    print_facts,
    print_heading,
    print_json,
    print_table,
)
from headrace.pipelines.errors import PipelineDefinitionError

if TYPE_CHECKING:
    from headrace.pipelines.definition_module import PipelineModule

app = typer.Typer(
    help="Run data pipelines on Spark: topics to lake, tables and back.",
    no_args_is_help=True,
    rich_markup_mode=help_style(),
)

Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="Name of a pipeline, or the path of its .py or .yaml file.",
        autocompletion=pipeline_names,
    ),
]


@app.command("list", epilog="Example: headrace pipeline list")
def list_(is_json: Json = False, state_dir: StateDir = None) -> None:
    """List the pipelines there are: shipped, installed, and runs of others' files."""
    from headrace.pipelines.registry import all_pipelines

    running = _running(state_dir_or_default(state_dir))
    modules = all_pipelines()
    rows = [
        {
            "pipeline": each.name,
            "origin": each.origin,
            "running": running.pop(each.name, []),
            "summary": each.problem or each.summary,
            "is_broken": each.problem is not None,
        }
        for each in modules
    ]
    # What runs from a file has no other place where it could be found.
    rows += [
        {
            "pipeline": name,
            "origin": "a file",
            "running": runs,
            "summary": NONE,
            "is_broken": False,
        }
        for name, runs in sorted(running.items())
    ]
    if is_json:
        for row in rows:
            print_json(row)
        return
    print_table(
        ("pipeline", "origin", "running", "summary"),
        [
            (each["pipeline"], each["origin"], _text_of(each["running"]), each["summary"])
            for each in rows
        ],
    )


@app.command(epilog="Example: headrace pipeline show archive")
def show(name: Name, is_json: Json = False) -> None:
    """Show a pipeline: what it does, what it reads and writes, its options."""
    from headrace.pipelines.registry import find

    module = find(name)
    facts = _facts(module)
    if is_json:
        options = [
            {
                "name": each.name,
                "help": each.help,
                "default": each.default,
                "is_required": each.is_required,
            }
            for each in module.options
        ]
        print_json({**facts, "options": options})
        return
    print_heading(f"{module.name}: {module.summary}")
    print_facts({name: value for name, value in facts.items() if name not in _IN_HEADING})
    if module.options:
        print()
        print_table(
            ("option", "default", "help"),
            [
                (each.name, "required" if each.is_required else each.default or NONE, each.help)
                for each in module.options
            ],
        )


_IN_HEADING = ("pipeline", "summary")


def _facts(module: "PipelineModule") -> dict[str, object]:
    decoder = NONE
    # It may depend on options, topics or sinks that only a run names.
    with contextlib.suppress(PipelineDefinitionError):
        decoder = module.build().decoder.describe()
    source = module.source
    return {
        "pipeline": module.name,
        "summary": module.summary,
        "origin": module.origin,
        "source": source.describe() if source else "by --topic or --pattern",
        "decoder": decoder,
        "sinks": ", ".join(sink.describe() for sink in module.sinks) or "by --to",
        "run": _usage(module),
    }


def _usage(module: "PipelineModule") -> str:
    """The shortest command that runs it."""
    is_file = module.origin.endswith((".py", ".yaml", ".yml"))
    words = ["headrace pipeline run", module.origin if is_file else module.name]
    words += [] if module.source and not module.source.is_empty else ["--topic TOPIC"]
    words += [] if module.sinks else ["--to URI"]
    for each in module.options:
        if each.is_required or each.example:
            words.append(f"--option {each.name}={shlex.quote(each.example or '…')}")
    return " ".join(words)


def _running(state_dir: Path) -> dict[str, list[str]]:
    """The names of live runs, by the pipeline they run."""
    from headrace.pipelines.running.run_state import all_runs

    found = dict[str, list[str]]()
    for each in all_runs(state_dir):
        if each.is_alive:
            found.setdefault(each.run["pipeline"], []).append(each.name)
    return found


def _text_of(value: object) -> str:
    return ", ".join(value) if isinstance(value, list) and value else NONE


app.command(epilog=run.EPILOG)(run.run)
app.command(epilog="Example: headrace pipeline status --json")(status.status)
app.command(epilog="Example: headrace pipeline stop archive")(status.stop)
app.command("dead-letters", epilog=dead_letters.EPILOG)(dead_letters.dead_letters)
app.command(epilog=init.EPILOG)(init.init)
app.command(epilog=setup.EPILOG)(setup.setup)
