"""Fixtures for the records tests: real batches of Kafka's, and strategies for made-up ones."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.records.batch import peek_header

KAFKA_DATA = Path(__file__).parent.parent / "data" / "kafka-4.3.1"


@pytest.fixture(scope="session")
def kafka_capture() -> Path:
    return KAFKA_DATA


@pytest.fixture(scope="session")
def kafka_batches() -> dict[str, list[bytes]]:
    """Every batch of every partition that Kafka wrote, by partition directory."""
    return {
        directory.name: [
            batch
            for segment in sorted(directory.glob("*.log"))
            for batch in _split(segment.read_bytes())
        ]
        for directory in sorted((KAFKA_DATA / "data").iterdir())
        if directory.is_dir()
    }


def _split(segment: bytes) -> Iterator[bytes]:
    position = 0
    while position < len(segment):
        header = peek_header(segment, position)
        assert header is not None
        yield segment[position : position + header.size]
        position += header.size
