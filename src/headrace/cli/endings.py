"""How every command ends: the exit codes, and the one table from errors to sentences.

No command catches an error to print it: what is raised comes to `ending`. typer is not imported
before something goes wrong, since `headrace serve` does without it.
"""

import errno
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from headrace.errors import ConfigError, HeadraceError

if TYPE_CHECKING:
    from headrace.client.errors import BusError

EXIT_FAILED = 1  # it was tried and did not work, or damage was found
EXIT_USAGE = 2  # the command line or the configuration cannot be right
EXIT_INTERRUPTED = 130  # what shells make of SIGINT: 128 + 2
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class CommandError(HeadraceError):
    """Ends a command; the message is the sentence for stderr."""


class UsageError(CommandError):
    """The command line or the configuration cannot be right."""


@contextmanager
def ending() -> Iterator[None]:
    """Turn each way a command can end early into its exit code, without a traceback."""
    import typer

    code = 0
    try:
        try:
            yield
        except HeadraceError as error:
            code = tell_error(error)
            raise typer.Exit(code) from error
        except KeyboardInterrupt:
            code = EXIT_INTERRUPTED
            raise typer.Exit(code) from None
        except typer.Exit as error:
            code = error.exit_code
            raise
        finally:
            # A closed pipe or a full disk is to be noticed here, not by the interpreter's end.
            sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read has read enough. What is still buffered goes nowhere, silently.
        _leave_stdout()
        raise typer.Exit(code) from None
    except OSError as error:
        if error.errno not in _FULL:
            raise
        _leave_stdout()
        place = f" {error.filename}" if error.filename else ""
        tell(f"cannot write{place}: {error.strerror}; make room")
        raise typer.Exit(EXIT_FAILED) from error


def _leave_stdout() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def tell_error(error: HeadraceError) -> int:
    """Say what went wrong on stderr; return the exit code it deserves."""
    from headrace.mirror.errors import MirrorRefusedError
    from headrace.pipelines.errors import PipelineDefinitionError

    tell(sentence_of(error))
    is_usage = isinstance(
        error, UsageError | ConfigError | PipelineDefinitionError | MirrorRefusedError
    )
    return EXIT_USAGE if is_usage else EXIT_FAILED


def sentence_of(error: HeadraceError) -> str:
    """What an error means to whoever typed the command."""
    from headrace.client.errors import BusError, UnreachableError

    if isinstance(error, UnreachableError):
        return f"{error}; start one with 'headrace serve' or name another with --bootstrap"
    if isinstance(error, BusError) and error.is_timeout:
        return f"{error} Give it longer with --timeout"
    return str(error)


def tell(message: str) -> None:
    """Say something on stderr that is not the command's answer."""
    print(f"headrace: {message}", file=sys.stderr)


def tell_each(outcomes: "Mapping[str, BusError | None]", on_done: Callable[[str], None]) -> None:
    """Call `on_done` with each name that worked; tell of the others, then fail."""
    import typer

    for name, error in outcomes.items():
        if error is None:
            on_done(name)
        else:
            tell(f"{name}: {sentence_of(error)}")
    if any(outcomes.values()):
        raise typer.Exit(EXIT_FAILED)
