"""Another commit of this checkout, built beside it, so that its broker can be measured too."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from bench import machine
from bench.errors import BenchError

ROOT = Path(__file__).parents[1]
# No setup.py is needed, and no network: what the build takes is in our own environment.
_BUILD = ("-c", "import setuptools; setuptools.setup()", "-q", "build_ext", "--inplace")
_LOOK = ("-c", "import headrace; print(headrace.__file__)")


class Commit(NamedTuple):
    """A commit, by the revision it was asked for and by its own id."""

    revision: str
    commit_id: str
    subject: str


def find_commit(revision: str, root: Path = ROOT) -> Commit:
    """What git has by this name; BenchError says when it has nothing."""
    asked = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    found = _run(["git", *asked], root)
    if found.returncode:
        raise BenchError(
            f"--baseline {revision}: git knows no such commit; name a branch, a tag, an id or, "
            "for the commit before, HEAD~1"
            + (f" ({said})" if (said := found.stderr.strip()) else "")
        )
    commit_id = found.stdout.strip()
    return Commit(
        revision, commit_id, _output(["git", "log", "-1", "--format=%s", commit_id], root)
    )


def describe_checkout(root: Path = ROOT) -> str:
    """Name what is measured as `now`: the commit, and whether files differ from it."""
    return _output(["git", "describe", "--always", "--dirty"], root)


def build_commit(commit: Commit, directory: Path, root: Path = ROOT) -> Path:
    """Write its files into `directory`, build its C part there, and return where its source is.

    A copy and no worktree of git's: whatever ends the run, nothing but a directory is left.
    """
    directory.mkdir()
    archive = directory.with_suffix(".zip")
    _output(["git", "archive", "--format=zip", "-0", f"--output={archive}", commit.commit_id], root)
    shutil.unpack_archive(archive, directory)
    archive.unlink()
    _output([sys.executable, *_BUILD], directory)
    source = directory / "src"
    has_accelerator = any(source.glob("headrace/records/_scan*.so"))
    if has_accelerator != machine.has_accelerator():
        slow, fast = ("now", commit.revision) if has_accelerator else (commit.revision, "now")
        raise BenchError(
            f"{slow} has no C accelerator and {fast} has one, which is no comparison; install a C "
            "compiler, and headrace again with 'make'"
        )
    loaded = _output([sys.executable, *_LOOK], directory, environment_of(directory))
    if not Path(loaded).is_relative_to(source):
        raise BenchError(f"{commit.revision} was built, but {loaded} would be measured")
    return directory


def environment_of(directory: Path) -> dict[str, str]:
    """What makes Python take headrace from there, and everything else from our environment."""
    return {
        **os.environ,
        "PYTHONPATH": str(directory / "src"),
        "PYTHONPYCACHEPREFIX": str(directory / "pycache"),
    }


def _output(
    command: Sequence[str], directory: Path, environment: dict[str, str] | None = None
) -> str:
    answer = _run(command, directory, environment)
    if answer.returncode:
        raise BenchError(f"{' '.join(command)} failed: {answer.stderr.strip()}")
    return answer.stdout.strip()


def _run(
    command: Sequence[str], directory: Path, environment: dict[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    try:
        return subprocess.run(
            command, cwd=directory, env=environment, capture_output=True, text=True
        )
    except FileNotFoundError as error:
        raise BenchError(f"a baseline needs {command[0]}, which is not installed") from error
