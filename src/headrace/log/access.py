"""How the bytes of a segment may be looked at: from wherever they are, or only in memory.

`BLOCKING` reads from the disk and checks what nobody has checked yet, however long that takes.
`RESIDENT` never waits: what is not in the page cache, was not checked or needs an index that is
not loaded raises `NotReadyError`. Who meets it lets a thread do the work (`log.verifying`) and
asks again. The event loop's fetches look that way.
"""

import os
from errno import EAGAIN, EOPNOTSUPP
from typing import NamedTuple

from headrace.log.files import OpenFile

_NOWAIT = getattr(os, "RWF_NOWAIT", 0)


class Warm(NamedTuple):
    """Needed: these bytes of a file in the page cache."""

    file: OpenFile
    position: int
    length: int


class Need(NamedTuple):
    """Needed of a segment: its index, checked bytes from `position` on, or both from the log."""

    kind: str
    segment: object  # a Segment; the module that uses it knows
    position: int = 0


INDEX, CHECK, EXAMINE = "index", "check", "examine"


class NotReadyError(Exception):
    """It cannot be read without waiting; `need` says what is missing. No fault of the data."""

    def __init__(self, need: Warm | Need) -> None:
        super().__init__(need)
        self.need = need


class Access:
    """Waits for the disk and for checks."""

    __slots__ = ()
    waits = True

    def pread(self, file: OpenFile, length: int, position: int) -> bytes | bytearray:
        """Up to `length` bytes at `position`, fewer at the end of the file."""
        return os.pread(file.fd, length, position)


class _ResidentAccess(Access):
    """Raises NotReadyError instead of waiting.

    Where the system cannot tell what is in memory (tmpfs, where all is; some network
    filesystems, where it may wait after all) everything counts as resident.
    """

    __slots__ = ("can_probe",)
    waits = False

    def __init__(self) -> None:
        self.can_probe = bool(_NOWAIT)

    def pread(self, file: OpenFile, length: int, position: int) -> bytes | bytearray:
        if self.can_probe:
            # What `try_read` would do first, without the call: nearly always it is there.
            buffer = bytearray(length)
            try:
                if os.preadv(file.fd, (buffer,), position, _NOWAIT) == length:
                    return buffer
            except OSError:
                pass  # `try_read` meets it again, and tells what it means
        content = self.try_read(file, length, position)
        if content is None:
            raise NotReadyError(Warm(file, position, length))
        return content

    def try_read(self, file: OpenFile, length: int, position: int) -> bytes | bytearray | None:
        """As `pread`; None when not all of it is in memory."""
        if self.can_probe:
            buffer = bytearray(length)
            try:
                count = os.preadv(file.fd, (buffer,), position, _NOWAIT)
            except OSError as error:
                if error.errno == EAGAIN:
                    return None
                if error.errno != EOPNOTSUPP:
                    raise
                self.can_probe = False
            else:
                if count == length:
                    return buffer
                # Short: what follows is not in memory, or the file ends.
                if position + count < os.fstat(file.fd).st_size:
                    return None
                return buffer[:count]
        return os.pread(file.fd, length, position)

    def has(self, file: OpenFile, position: int, length: int, every_bytes: int) -> bool:
        """Whether a stretch is in memory, as far as its ends and samples tell."""
        if not self.can_probe:
            return True
        buffers = (bytearray(1),)
        fd, last = file.fd, position + length - 1
        try:
            while position < last:
                os.preadv(fd, buffers, position, _NOWAIT)
                position += every_bytes
            os.preadv(fd, buffers, last, _NOWAIT)
        except OSError as error:
            if error.errno == EAGAIN:
                return False
            # Else the read that follows meets the fault and tells it.
            if error.errno == EOPNOTSUPP:
                self.can_probe = False
        return True


BLOCKING = Access()
RESIDENT = _ResidentAccess()
