from collections.abc import Iterator

import pytest

from headrace.kafka.node import KafkaNode


@pytest.fixture(scope="package")
def kafka_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaNode]:
    with KafkaNode(tmp_path_factory.mktemp("kafka")) as node:
        yield node
