"""What the interoperability tests share: Java where it is to be had, and both engines."""

from collections.abc import Iterator

import pytest

from headrace.kafka.node import KafkaNode
from headrace.testing import running_broker
from tests.interop.clients import CLIENTS
from tests.interop.wire import Engine


@pytest.fixture(scope="session")
def needs_java() -> None:
    if reason := CLIENTS["java"].why_absent():
        pytest.skip(reason)


@pytest.fixture(
    scope="session",
    params=["headrace", pytest.param("kafka", marks=[pytest.mark.slow, pytest.mark.java])],
)
def engine(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Engine]:
    """Both engines must give the same answers; real Kafka proves that the tests ask rightly."""
    if request.param == "headrace":
        with running_broker() as broker:
            yield Engine("headrace", broker.bootstrap)
    else:
        request.getfixturevalue("needs_java")
        with KafkaNode(tmp_path_factory.mktemp("kafka")) as node:
            yield Engine("kafka", node.bootstrap)
