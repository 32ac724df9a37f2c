"""Input cut into lines: bytes come in as they are read, lines go out.

Invariant: what is held is bounded. Of a line longer than `max_line_bytes` only so much is kept
that it is seen to be too long, whatever its length.
"""


class LineSplitter:
    """Cuts at each delimiter, which may be several bytes; None: all of it is one line."""

    def __init__(self, delimiter: bytes | None, max_line_bytes: int) -> None:
        self._delimiter = delimiter
        self._max_line_bytes = max_line_bytes
        self._pending = b""

    @property
    def pending_bytes(self) -> int:
        """How much of a line has come whose end has not."""
        return len(self._pending)

    def feed(self, block: bytes) -> list[bytes]:
        """Take the next bytes; return the lines that are now whole."""
        whole = self._pending + block if self._pending else block
        if self._delimiter is None:
            self._pending = whole[: self._max_line_bytes + 1]
            return []
        lines = whole.split(self._delimiter)
        self._pending = lines.pop()
        if len(self._pending) > self._max_line_bytes + len(self._delimiter):
            # The end stays as it is: half a delimiter may be in it.
            kept = self._pending[: self._max_line_bytes + 1]
            self._pending = kept + self._pending[len(self._pending) + 1 - len(self._delimiter) :]
        return lines

    def finish(self) -> list[bytes]:
        """Return what comes after the last delimiter, unless that ended the input."""
        is_line = bool(self._pending) or self._delimiter is None
        lines, self._pending = [self._pending] if is_line else [], b""
        return lines
