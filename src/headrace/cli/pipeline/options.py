"""What the commands of `headrace pipeline` share: options, completion, errors as sentences."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from headrace.cli.terminal import CommandError, UsageError, ending_well
from headrace.errors import ConfigError, HeadraceError
from headrace.pipelines.errors import PipelineDefinitionError

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


def parse_pairs(option: str, texts: Iterable[str]) -> dict[str, str]:
    """`NAME=VALUE` words as a mapping; UsageError for what is none."""
    pairs = dict[str, str]()
    for text in texts:
        name, separator, value = text.partition("=")
        if not separator or not name.strip():
            raise UsageError(f"{option} {text}: write NAME=VALUE")
        check_text(option, name.strip(), value)
        pairs[name.strip()] = value
    return pairs


def check_text(option: str, name: str, value: str) -> None:
    """UsageError for a pair with bytes that are no UTF-8; the value may be a password."""
    try:
        f"{name}={value}".encode()
    except UnicodeEncodeError:
        # Python has such bytes as lone surrogates, which neither a terminal nor a file takes.
        shown = name.encode("utf-8", "backslashreplace").decode("utf-8")
        raise UsageError(f"{option} {shown}: write its name and value in UTF-8") from None


@contextmanager
def in_our_words() -> Iterator[None]:
    """Errors of pipelines end a command with their sentence and the exit code they deserve."""
    with ending_well():
        try:
            yield
        except CommandError:
            raise
        except (PipelineDefinitionError, ConfigError) as error:
            raise UsageError(str(error)) from error
        except HeadraceError as error:
            raise CommandError(str(error)) from error


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
