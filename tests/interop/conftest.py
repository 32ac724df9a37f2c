"""What the interoperability tests share: Java where it is to be had, and both engines."""

import contextlib
import uuid
from collections.abc import Callable, Iterator

import pytest
from tests.interop.clients import CLIENTS
from tests.interop.consumer_wire import Consumer, wait_until_known
from tests.interop.group_wire import (
    FIND_COORDINATOR,
    OFFSET_FETCH,
    Member,
    ask,
    subscription,
    wait_for,
)
from tests.interop.wire import EARLIEST, Engine, WireClient

from headrace.kafka.node import KafkaNode
from headrace.testing import running_broker

# Sessions may be as short, and groups as small, as a test that waits for their limits needs.
GROUP_SETTINGS = {
    "group.min.session.timeout.ms": "10",
    "group.max.size": "6",
    "group.consumer.max.size": "6",
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.min.session.timeout.ms": "50",
    "group.consumer.min.heartbeat.interval.ms": "10",
}


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
        settings = {name.replace(".", "_"): value for name, value in GROUP_SETTINGS.items()}
        with running_broker(**settings) as broker:
            yield Engine("headrace", broker.bootstrap, broker.advance)
    else:
        request.getfixturevalue("needs_java")
        with KafkaNode(tmp_path_factory.mktemp("kafka"), settings=GROUP_SETTINGS) as node:
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


@pytest.fixture
def four(new_topic: Callable[..., str]) -> str:
    """A topic of four partitions."""
    return new_topic(partitions=4)


@pytest.fixture
def new_group(wire: WireClient) -> Callable[[], str]:
    """Think of a group nobody else uses, and wait for its coordinator."""

    def name() -> str:
        group_id = f"g-{uuid.uuid4()}"
        wait_for(lambda: _has_coordinator(wire, group_id))
        return group_id

    return name


@pytest.fixture
def group_id(new_group: Callable[[], str]) -> str:
    """A new group, with a coordinator that is ready for it."""
    return new_group()


def _has_coordinator(wire: WireClient, group_id: str) -> bool:
    """The first ones asked create `__consumer_offsets`, and have to wait for it."""
    found = ask(wire, FIND_COORDINATOR, 6, key_type=0, coordinator_keys=[group_id])
    if found.coordinators[0].error_code != 0:
        return False
    groups = [{"group_id": group_id, "topics": []}]
    return bool(ask(wire, OFFSET_FETCH, 8, groups=groups).groups[0].error_code == 0)


@pytest.fixture
def new_member(engine: Engine, group_id: str) -> Iterator[Callable[..., Member]]:
    """Make members of the group, each with its connection: `new_member(instance_id="i")`."""
    with contextlib.ExitStack() as stack:
        yield lambda **options: stack.enter_context(Member(engine.bootstrap, group_id, **options))


@pytest.fixture
def new_consumer(wire: WireClient, group_id: str) -> Callable[..., Consumer]:
    """Make members of the new protocol that read topics: `new_consumer("a", topic)`."""

    def create(member_id: str, *topics: str, **options: object) -> Consumer:
        for topic in topics:
            wait_until_known(wire, topic)
        return Consumer(wire, group_id, member_id, *topics, **options)

    return create


@pytest.fixture
def classic(new_member: Callable[..., Member], four: str) -> Callable[..., Member]:
    """Make classic members that read the topic of four partitions."""
    wishes = [{"name": "range", "metadata": subscription(four)}]
    return lambda **options: new_member(protocols=wishes, **options)
