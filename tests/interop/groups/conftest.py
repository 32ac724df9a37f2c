"""Both engines with short group timings, and a group of their own for each test."""

import uuid
from collections.abc import Callable, Iterator

import pytest
from tests.interop.groups.group import Group
from tests.interop.wire import Engine

from headrace.kafka.node import KafkaNode
from headrace.testing import broker_process

# A member that was killed is missed after seconds, and next-protocol members hear soon of changes.
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "300",
    "offsets.topic.num.partitions": "5",
}


@pytest.fixture(
    scope="session",
    params=["headrace", pytest.param("kafka", marks=[pytest.mark.slow, pytest.mark.java])],
)
def engine(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Engine]:
    """As the fixture of all interoperability tests, with the timings above."""
    directory = tmp_path_factory.mktemp(f"groups-{request.param}")
    if request.param == "headrace":
        settings = {name.replace(".", "_"): value for name, value in SETTINGS.items()}
        with broker_process(directory, **settings) as broker:
            yield Engine("headrace", broker.bootstrap)
    else:
        request.getfixturevalue("needs_java")
        with KafkaNode(directory, settings=SETTINGS) as node:
            yield Engine("kafka", node.bootstrap)


@pytest.fixture
def new_group(engine: Engine, new_topic: Callable[..., str]) -> Iterator[Callable[..., Group]]:
    """Make a group with a topic of its own: `new_group(partitions=6)`."""
    groups: list[Group] = []

    def make(partitions: int = 6) -> Group:
        group = Group(engine, new_topic(partitions), partitions, f"g-{uuid.uuid4()}")
        groups.append(group)
        return group

    yield make
    for group in groups:
        group.numbers.stop()
        group.close()
