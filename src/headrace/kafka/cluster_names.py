"""Where clusters lie by their names: in a directory of that name, or where a link of it points.

`up --name C --dir D` leaves such a link, so that C is known to all commands; `destroy` takes it
away. A link whose cluster is gone counts for nothing.

Invariant: `_usual_place` alone makes a path of a name, so nothing outside is looked at or removed.
"""

import contextlib
import os
import shlex
from pathlib import Path

import platformdirs

from headrace.kafka.errors import ClusterError

VARIABLE = "HEADRACE_KAFKA_DIR"
DEFAULT_NAME = "default"


def clusters_directory() -> Path:
    """Where clusters lie by their names: HEADRACE_KAFKA_DIR, or the platform's place."""
    given = os.environ.get(VARIABLE)
    return Path(given) if given else Path(platformdirs.user_data_dir("headrace")) / "kafka"


def known_names() -> list[str]:
    """The names of the clusters that can be found by them."""
    from headrace.kafka.layout import is_name

    found = (path for path in clusters_directory().glob("*") if has_cluster(path))
    return sorted(path.name for path in found if is_name(path.name))


def directory_of(name: str) -> Path:
    """The directory of the cluster of this name; its usual place while there is none."""
    usual = _usual_place(name)
    return usual.resolve() if usual.is_symlink() and has_cluster(usual) else usual


def has_cluster(directory: Path) -> bool:
    # Imported here, as below: how to run Java comes with it, and a help text needs none of that.
    from headrace.kafka.layout import FILE_NAME

    return (directory / FILE_NAME).exists()


def check_free(name: str, directory: Path) -> None:
    """ClusterError if the name is that of another cluster than the one in `directory`."""
    place = directory_of(name)
    if has_cluster(place) and not _is_same(place, directory):
        raise ClusterError(
            f"there is a cluster called {name} already, in {place}; choose another --name"
        )


def remember(name: str, directory: Path) -> None:
    """Let the cluster in `directory` be found by its name; ClusterError if another has it."""
    check_free(name, directory)
    usual = _usual_place(name)
    if _is_same(usual, directory):
        return
    try:
        usual.parent.mkdir(parents=True, exist_ok=True)
        forget_stale(name)
        usual.symlink_to(directory.resolve())
    except FileExistsError as error:
        raise ClusterError(f"{usual} is there already; choose another --name") from error
    except OSError as error:
        raise ClusterError(f"cannot write {usual}: {error.strerror}") from error


def forget(name: str, directory: Path) -> None:
    """Take away what `remember` has left of the cluster in `directory`."""
    usual = _usual_place(name)
    if usual.is_symlink() and _is_same(usual, directory):
        with contextlib.suppress(FileNotFoundError):
            usual.unlink()


def forget_stale(name: str) -> None:
    """Take away a link whose cluster is gone: the name is free again."""
    usual = _usual_place(name)
    if usual.is_symlink() and not has_cluster(usual):
        usual.unlink(missing_ok=True)


def option_for(name: str, directory: Path) -> str:
    """How commands have to be told which cluster is meant, with a space in front; empty: not."""
    if not _is_same(_usual_place(name), directory):
        return f" --dir {shlex.quote(str(directory))}"
    return "" if name == DEFAULT_NAME else f" --name {name}"


def _usual_place(name: str) -> Path:
    """Where a name stands for a cluster; ClusterError for what is no name but a way elsewhere."""
    from headrace.kafka.layout import check_name

    check_name(name)
    return clusters_directory() / name


def _is_same(one: Path, other: Path) -> bool:
    return one.resolve() == other.resolve()
