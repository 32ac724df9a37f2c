"""The command line: one module or sub-package per noun.

`main` sends `serve` straight to its module: typer costs a quarter of the 0.3 s in which a
broker is to be ready.
"""

import os
import sys

from headrace.cli.endings import EXIT_INTERRUPTED


def main() -> None:
    """Run the `headrace` command; ends the process with its exit code."""
    try:
        _open_standard_streams()
        _run(sys.argv[1:])
    except KeyboardInterrupt:  # before the command runs: half a second goes into imports
        sys.exit(EXIT_INTERRUPTED)


def _open_standard_streams() -> None:
    """Where somebody closed one (`>&-`), what is written goes nowhere.

    Else Python has None in its place, and the next file or connection gets its number, into which
    Java and librdkafka would then write.
    """
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            os.set_inheritable(number, True)
            stream = open(number, mode)  # noqa: SIM115 - for as long as the process lives
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)


def _run(arguments: list[str]) -> None:
    # Where hypothesis is installed kio imports it, which takes longer than all the rest
    # of the start. None makes that import fail, as it does where it is not installed.
    sys.modules.setdefault("hypothesis", None)  # type: ignore[arg-type]
    if arguments[:1] == ["serve"] and not {"-h", "--help"} & set(arguments):
        from headrace.cli.serve.command import run
        from headrace.cli.serve.options import parse_arguments

        sys.exit(run(parse_arguments(arguments[1:])))
    from headrace.cli.app import app

    app(prog_name="headrace")
