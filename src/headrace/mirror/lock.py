"""One mirror of a name between two clusters at a time, on this machine.

Mirrors on two machines are not kept apart by it; they notice each other by the offsets.
"""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

from headrace.file_lock import FileLock, LockedError
from headrace.mirror.errors import MirrorError

_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]")


@contextlib.contextmanager
def locked(state_dir: Path, source_id: str, target_id: str, name: str) -> Iterator[None]:
    """Hold the lock; the kernel lets go of it when the process ends in any way."""
    file_name = _UNSAFE.sub("_", f"{source_id}-{target_id}-{name}.lock")
    path = state_dir / "mirrors" / file_name
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(path)
    except OSError as error:
        raise MirrorError(
            f"cannot make {path}: {error.strerror}; set HEADRACE_STATE_DIR to a directory that "
            "can be written to"
        ) from error
    except LockedError as error:
        raise MirrorError(
            f"the mirror {name} between these clusters runs already on this machine; stop it, "
            "or give this one another --name and --topics"
        ) from error
    with lock:
        yield
