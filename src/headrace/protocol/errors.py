"""Bytes that are not a request."""

from headrace.errors import HeadraceError


class WireError(HeadraceError):
    """Bytes that break the wire format; the connection is closed."""


class TooManyElementsError(WireError):
    """A request that names more than it can mean; refused before it is read to its end."""

    def __init__(self, count: int, limit: int) -> None:
        super().__init__(f"{count} topics and partitions in one request; {limit} are allowed")
        self.count, self.limit = count, limit
