"""Open files under a bound: an LRU of descriptors, and the few durable ways to write.

Invariant: a descriptor is closed when nothing refers to its `OpenFile` any more, so a
reader that holds one may go on after the cache let it go or the file was deleted.
"""

import ctypes
import os
import resource
from collections import deque
from contextlib import suppress
from errno import EIO, EMFILE, ENFILE
from pathlib import Path

_BLOCK_BYTES = 4096
# To open a file again costs 20 µs: of thousands of partitions, those in use fit, and the rest
# need no descriptor.
_MAX_OPEN_FILES = 900


class OpenFile:
    """One open descriptor; closed with its last reference."""

    __slots__ = ("fd", "path")

    def __init__(self, path: Path, flags: int) -> None:
        self.fd = -1
        self.path = path
        self.fd = os.open(path, flags | os.O_CLOEXEC, 0o644)

    def sync(self) -> None:
        """Make what was written to it survive a power cut."""
        os.fdatasync(self.fd)

    def __del__(self) -> None:
        if self.fd >= 0:
            # Nothing can be done about a failing close here; data is synced by then.
            with suppress(OSError):
                os.close(self.fd)


class NamedFile:
    """A file or directory that is opened only while it is synced: there may be thousands."""

    __slots__ = ("path",)

    def __init__(self, path: Path) -> None:
        self.path = path

    def sync(self) -> None:
        """As `OpenFile.sync`; a file that was deleted meanwhile needs none."""
        with suppress(FileNotFoundError):
            sync_file(self.path)


class CachedFile:
    """A file that is open while it is used much; `get` opens it again otherwise."""

    __slots__ = ("cache", "file", "flags", "is_recent", "path")

    def __init__(self, cache: "FileCache", path: Path, flags: int) -> None:
        self.cache = cache
        self.path = path
        self.flags = flags
        self.file: OpenFile | None = None
        self.is_recent = False

    def get(self) -> OpenFile:
        self.is_recent = True
        return self.file or self.cache.admit(self)

    def close(self) -> None:
        """Give the descriptor up (readers that hold it keep it)."""
        self.file = None


class FileCache:
    """Keeps at most `limit` files open; those not used since the last round go first."""

    def __init__(self, limit: int | None = None) -> None:
        self.limit = default_open_files() if limit is None else max(1, limit)
        self._open: deque[CachedFile] = deque()

    def cached(self, path: Path, flags: int = os.O_RDWR) -> CachedFile:
        return CachedFile(self, path, flags)

    def admit(self, cached: CachedFile) -> OpenFile:
        self._make_room(self.limit)
        try:
            opened = OpenFile(cached.path, cached.flags)
        except OSError as error:
            if error.errno not in (EMFILE, ENFILE):
                raise
            # Connections took more than their share: get by with fewer files from now on.
            self.limit = max(1, len(self._open) // 2)
            self._make_room(self.limit)
            opened = OpenFile(cached.path, cached.flags)
        cached.file = opened
        self._open.append(cached)
        return opened

    def _make_room(self, limit: int) -> None:
        files = self._open
        # Every round clears one `is_recent`, so this ends within two turns of the ring.
        while len(files) >= limit:
            candidate = files.popleft()
            if candidate.file is None:
                continue
            if candidate.is_recent:
                candidate.is_recent = False
                files.append(candidate)
            else:
                candidate.file = None


def raise_open_files_limit() -> tuple[int, int]:
    """Let the process open all the files it may, as Java's does; (limit before, limit now)."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return soft, resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def default_open_files() -> int:
    """Half of what the process may open, for connections need the other half; not thousands."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return _MAX_OPEN_FILES
    return max(16, min(_MAX_OPEN_FILES, soft // 2))


def pread_fully(fd: int, length: int, position: int) -> bytes:
    """`length` bytes at `position`, fewer only at the end of the file.

    Blocks the disk cannot read come back as zeros: they fail the checksum
    like any other damage, and what lies behind them can still be found.
    """
    try:
        data = os.pread(fd, length, position)
        if len(data) == length or not data:
            return data
        pieces = [data]
        done = len(data)
        while done < length and (data := os.pread(fd, length - done, position + done)):
            pieces.append(data)
            done += len(data)
        return b"".join(pieces)
    except OSError as error:
        if error.errno != EIO:
            raise
        return _pread_around_bad_blocks(fd, length, position)


def _pread_around_bad_blocks(fd: int, length: int, position: int) -> bytes:
    out = bytearray(max(0, min(length, os.fstat(fd).st_size - position)))
    at = 0
    while at < len(out):
        step = min(_BLOCK_BYTES - (position + at) % _BLOCK_BYTES, len(out) - at)
        with suppress(OSError):
            block = os.pread(fd, step, position + at)
            out[at : at + len(block)] = block
        at += step
    return bytes(out)


def sync_directory(path: Path) -> None:
    """Make creations, renames and removals in `path` survive a power cut."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def sync_file(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fdatasync(fd)
    finally:
        os.close(fd)


def sync_filesystem(path: Path) -> None:
    """Make all that was written to the filesystem of `path` survive a power cut, or raise.

    syncfs(2), not sync(2): that one has no way to tell of a failure.
    """
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.syncfs(fd) < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(path))
    finally:
        os.close(fd)


def write_all(fd: int, data: bytes, position: int = 0) -> None:
    """Write every byte or raise."""
    view = memoryview(data)
    while view:
        written = os.pwrite(fd, view, position)
        view = view[written:]
        position += written


def replace_file(path: Path, data: bytes, *, is_durable: bool = True) -> None:
    """Replace `path` in one step: a crash leaves the old content or the new, never a mix."""
    temporary = path.with_name(path.name + ".tmp")
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    try:
        write_all(fd, data)
        if is_durable:
            os.fsync(fd)
    finally:
        os.close(fd)
    temporary.replace(path)
    if is_durable:
        sync_directory(path.parent)
