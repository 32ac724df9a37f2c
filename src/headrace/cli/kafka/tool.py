"""`headrace kafka tool`: Kafka's own command line tools, told which cluster is meant."""

import difflib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from headrace.cli.endings import UsageError
from headrace.cli.kafka.options import Dir, Name, open_cluster
from headrace.cli.terminal import print_table
from headrace.kafka.cluster_names import DEFAULT_NAME
from headrace.kafka.errors import ClusterError

EPILOG = "Example: headrace kafka tool topics --describe"
# Options before the tool's name are ours, all behind it are the tool's.
CONTEXT = {"allow_interspersed_args": False, "ignore_unknown_options": True}


def _tool_names(incomplete: str) -> list[str]:
    from headrace.kafka.tools import TOOLS

    return [name for name in TOOLS if name.startswith(incomplete)]


def tool(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TOOL [ARGS]...",
            help="Name of the tool, such as topics, and what it is to be told.",
            autocompletion=_tool_names,
            show_default=False,
        ),
    ] = None,
    name: Name = DEFAULT_NAME,
    dir: Dir = None,
    list_: Annotated[bool, typer.Option("--list", help="List the tools there are.")] = False,
) -> None:
    """Run one of Kafka's own tools, on the cluster if the tool is not told of another.

    Options of ours stand before the tool's name; what is behind it is the tool's, --help too.
    The tool's exit code is the command's.
    """
    from headrace.kafka.tools import TOOLS

    if list_:
        print_table(("tool", "for"), [(each, TOOLS[each].summary) for each in TOOLS])
        return
    if not words:
        raise UsageError("name a tool, such as topics; 'headrace kafka tool --list' has all")
    if words[0] not in TOOLS:
        near = difflib.get_close_matches(words[0], TOOLS, 1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise UsageError(
            f"no tool is called {words[0]}; {hint}'headrace kafka tool --list' has all"
        )
    _become(words[0], words[1:], name, dir)


def _become(tool_name: str, words: Sequence[str], name: str, directory: Path | None) -> None:
    """Replace this process by the tool: its streams, signals and exit code are the tool's own."""
    from headrace.java.jars import cache_directory
    from headrace.kafka.jars import KAFKA_VERSION
    from headrace.kafka.jvm import SMALL_JVM, java_command, use_archive, write_log4j
    from headrace.kafka.tools import TOOLS, class_of, lacks_bootstrap, with_bootstrap

    version, arguments = KAFKA_VERSION, [*words]
    try:
        cluster = open_cluster(name, directory)
    except ClusterError as error:
        if lacks_bootstrap(tool_name, words):
            raise ClusterError(
                f"{error}; or name the brokers of another: "
                f"headrace kafka tool {tool_name} {TOOLS[tool_name].bootstrap} HOST:PORT …"
            ) from error
    else:
        version = cluster.version
        arguments = with_bootstrap(tool_name, words, cluster.bootstrap, version)
    command = java_command(
        class_of(tool_name, version),
        *arguments,
        flags=[*SMALL_JVM, *use_archive(version)],
        log4j_file=write_log4j(cache_directory()),
        version=version,
    )
    sys.stdout.flush()
    os.execv(command[0], command)
