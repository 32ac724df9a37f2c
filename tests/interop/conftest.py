"""What the interoperability tests share: Java where it is to be had, and both engines."""

import uuid
from collections.abc import Callable, Iterator

import pytest
from tests.interop.clients import CLIENTS
from tests.interop.wire import EARLIEST, Engine, WireClient

from headrace.kafka.node import KafkaNode
from headrace.testing import running_broker


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


@pytest.fixture
def wire(engine: Engine) -> Iterator[WireClient]:
    """One connection to the engine."""
    with WireClient(engine.bootstrap) as client:
        yield client


@pytest.fixture
def new_topic(wire: WireClient) -> Callable[..., str]:
    """Create a topic nobody else uses: `new_topic(partitions=3, cleanup_policy="compact")`."""

    def create(partitions: int = 1, **configs: object) -> str:
        name = f"t-{uuid.uuid4()}"
        # The tests write times that lie years back: retention would take them away.
        created = wire.create_topic(name, partitions, **{"retention_ms": -1, **configs})
        assert created.error_code == 0, created.error_message
        # Real Kafka answers before the broker has heard of the topic from the controller.
        while wire.list_offset(name, EARLIEST).error_code != 0:
            pass
        return name

    return create


@pytest.fixture
def topic(new_topic: Callable[..., str]) -> str:
    """A new topic of one partition."""
    return new_topic()
