"""How many messages to ask a consumer for at once.

Many small ones are quick to handle; as many large ones would fill the memory, for librdkafka
collects what it was asked for before it gives anything.
"""

_LEAST, _FIRST, _MOST = 8, 64, 5000
_WANTED_BYTES = 8 * 1024 * 1024
_GROWTH = 4  # at most, from one batch to the next: sizes change within a topic


class BatchSize:
    """Follows the size of the messages that come."""

    def __init__(self) -> None:
        self.count = _FIRST

    def seen(self, messages: int, size_bytes: int) -> None:
        """Learn from a batch."""
        if messages:
            fitting = _WANTED_BYTES * messages // max(size_bytes, 1)
            self.count = max(_LEAST, min(fitting, self.count * _GROWTH, _MOST))
