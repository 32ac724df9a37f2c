"""Locks on files: whoever holds one holds the file that bears the name now.

A directory may be removed and made again while somebody waits for a lock in it. A lock on the
file that is gone keeps nobody out, so it is never handed out.
"""

import fcntl
import os
import time
from pathlib import Path

SHARED, EXCLUSIVE = fcntl.LOCK_SH, fcntl.LOCK_EX
# Who merely looks, or starts a node, holds a lock for a moment.
_PATIENCE_S = 1.0
_PAUSE_S = 0.02


def take(path: Path, kind: int = EXCLUSIVE) -> int | None:
    """Lock the file, made if need be, and return its descriptor; None while others hold it."""
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        if is_granted(lock, kind) and _bears_its_name(lock, path):
            return lock
        os.close(lock)
        if time.monotonic() >= deadline:
            return None
        time.sleep(_PAUSE_S)


def is_granted(lock: int, kind: int) -> bool:
    """Lock an open file, if that can be done at once."""
    try:
        fcntl.flock(lock, kind | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _bears_its_name(lock: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(lock), path.stat())
    except FileNotFoundError:
        return False
