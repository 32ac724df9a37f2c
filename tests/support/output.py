"""What a test captured, without what others say in the same process."""

import re

_LIBRDKAFKA = re.compile(r"%\d\|")


def told_by_us(text: str) -> list[str]:
    """Lines but librdkafka's: other tests' clients, whose broker has ended, speak as they like."""
    return [line for line in text.splitlines() if not _LIBRDKAFKA.match(line)]
