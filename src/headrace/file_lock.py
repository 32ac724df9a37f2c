"""Locks on files, which the kernel lets go of when whoever holds one dies in any way.

Invariant: a lock that was granted is on the file that bears the name now. A directory may be
removed and made again while somebody waits for a lock in it, and a lock on the file that is gone
keeps nobody out.
"""

import contextlib
import fcntl
import os
import weakref
from pathlib import Path
from types import TracebackType
from typing import Self

from headrace.patience import Patience

_LONGEST_PAUSE_S = 0.05
_LONGEST_NOTE_BYTES = 64 * 1024


class LockedError(Exception):
    """Others hold the lock; `note` is what they wrote into its file, empty if nothing."""

    def __init__(self, path: Path, note: str) -> None:
        super().__init__(f"{path} is locked by another process")
        self.path, self.note = path, note


class FileLock:
    """One lock, held from construction to `close`, alone or with others who share it.

    `former_note` is what the last owner had written and not taken back: one that was killed.
    `for_java` excludes Java's kind of lock too, which does not see ours. A child that inherits
    `fileno` holds the lock as long as it lives, whether we close ours or not.
    """

    def __init__(
        self, path: Path, *, is_shared: bool = False, timeout_s: float = 0.0, for_java: bool = False
    ) -> None:
        self._path = path
        self._has_note = False
        self._fd = _take(path, is_shared=is_shared, timeout_s=timeout_s, for_java=for_java)
        _held.add(self)
        try:
            self.former_note = _read(self._fd)
        except BaseException:
            self.close()
            raise

    def fileno(self) -> int:
        """The descriptor, for a child to inherit: one that is forked from now on keeps it."""
        _held.discard(self)
        return self._fd

    def let_go_in_child(self) -> None:
        """For a process that was forked, and has no part in what its parent locked."""
        fd, self._fd, self._has_note = self._fd, -1, False
        if fd >= 0:
            os.close(fd)

    def write(self, note: str) -> None:
        """Say who holds it, in the file, for those who find it taken and for who comes next."""
        self._has_note = True
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, note.encode(), 0)

    def close(self) -> None:
        """Let others have it. Does nothing the second time: the number may be another file's."""
        fd, self._fd = self._fd, -1
        if fd < 0:
            return
        if self._has_note:
            with contextlib.suppress(OSError):
                os.ftruncate(fd, 0)
        os.close(fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


# Of this process. By exec a child inherits a lock only if asked to, but by a fork it would.
_held = weakref.WeakSet[FileLock]()


def _let_go_in_child() -> None:
    for lock in list(_held):
        lock.let_go_in_child()


os.register_at_fork(after_in_child=_let_go_in_child)


def is_locked(path: Path) -> bool:
    """Whether somebody holds it alone. Nothing is made or written to find out."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return not _is_granted(descriptor, fcntl.LOCK_SH)
    finally:
        os.close(descriptor)


def _take(path: Path, *, is_shared: bool, timeout_s: float, for_java: bool) -> int:
    kind = fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX
    patience = Patience(timeout_s, first_pause_s=0.01, longest_pause_s=_LONGEST_PAUSE_S)
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            is_granted = _is_granted(descriptor, kind, for_java=for_java)
            if is_granted and _bears_its_name(descriptor, path):
                return descriptor
            note = _read(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
        if not is_granted and not patience.pause():
            raise LockedError(path, note)


def _is_granted(descriptor: int, kind: int, *, for_java: bool = False) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        if for_java:
            fcntl.lockf(descriptor, kind | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):  # lockf(3) may say either
        return False
    return True


def _bears_its_name(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _read(descriptor: int) -> str:
    return os.pread(descriptor, _LONGEST_NOTE_BYTES, 0).decode("utf-8", "replace")
