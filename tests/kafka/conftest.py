from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.java.conftest import repository

from headrace.kafka.node import KafkaNode

__all__ = ["repository"]


@pytest.fixture(scope="module")
def kafka_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaNode]:
    directory: Path = tmp_path_factory.mktemp("kafka")
    with KafkaNode(directory) as node:
        yield node
