"""The command line: one module per noun.

`main` sends `serve` straight to its module: typer costs a quarter of the 0.3 s in which a
broker is to be ready.
"""

import sys

EXIT_FAILED = 1  # it was tried and did not work, or damage was found
EXIT_USAGE = 2  # the command line or the configuration cannot be right
EXIT_INTERRUPTED = 130  # what shells make of SIGINT: 128 + 2


def main() -> None:
    """Run the `headrace` command; ends the process with its exit code."""
    try:
        _run(sys.argv[1:])
    except KeyboardInterrupt:  # before the command runs: half a second goes into imports
        sys.exit(EXIT_INTERRUPTED)


def _run(arguments: list[str]) -> None:
    # Where hypothesis is installed kio imports it, which takes longer than all the rest
    # of the start. None makes that import fail, as it does where it is not installed.
    sys.modules.setdefault("hypothesis", None)  # type: ignore[arg-type]
    if arguments[:1] == ["serve"] and not {"-h", "--help"} & set(arguments):
        from headrace.cli.serve import parse_arguments, run

        sys.exit(run(parse_arguments(arguments[1:])))
    from headrace.cli.app import app

    app(prog_name="headrace")
