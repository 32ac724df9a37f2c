"""What a benchmark raises."""

from headrace.errors import HeadraceError


class BenchError(HeadraceError):
    """A measurement cannot be taken, or what was measured is not valid."""
