"""What clients do besides writing, reading and groups: idempotent writing, leading topics."""

import asyncio
import subprocess
import uuid
import warnings
from collections.abc import Callable, Iterator

import confluent_kafka as ck
import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin import NewPartitions as AiokafkaNewPartitions
from aiokafka.admin import NewTopic as AiokafkaNewTopic
from confluent_kafka import admin as ck_admin
from tests.interop.clients import CLIENTS, Message

from headrace.records.batch import peek_header
from headrace.testing import RunningBroker, running_broker

with warnings.catch_warnings():
    # Its import reads schemas through a function of importlib that Python 3.11 deprecates.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaAdminClient, KafkaProducer

_WAIT_S = 120
Names = list[str]


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    with running_broker() as running:
        yield running


def _by_confluent(bootstrap: str, topic: str) -> None:
    producer = ck.Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    producer.produce(topic, b"once")
    assert producer.flush(_WAIT_S) == 0


def _by_kafka_python(bootstrap: str, topic: str) -> None:
    producer = KafkaProducer(bootstrap_servers=bootstrap, enable_idempotence=True)
    producer.send(topic, b"once").get(_WAIT_S)
    producer.close()


def _by_aiokafka(bootstrap: str, topic: str) -> None:
    async def write() -> None:
        async with AIOKafkaProducer(bootstrap_servers=bootstrap, enable_idempotence=True) as it:
            await it.send_and_wait(topic, b"once")

    asyncio.run(write())


def _by_kcat(bootstrap: str, topic: str) -> None:
    command = ["kcat", "-F", "/dev/null", "-b", bootstrap, "-P", "-t", topic]
    subprocess.run(
        [*command, "-X", "enable.idempotence=true"], input=b"once\n", timeout=_WAIT_S, check=True
    )


def _by_java(bootstrap: str, topic: str) -> None:
    CLIENTS["java"].write(bootstrap, topic, 0, "none", [Message(None, b"once")])  # its default


WRITERS = {
    "confluent": _by_confluent,
    "kafka-python": _by_kafka_python,
    "aiokafka": _by_aiokafka,
    "kcat": _by_kcat,
    "java": _by_java,
}


@pytest.mark.feature("{client}", "idempotent producer")
@pytest.mark.parametrize(
    "client",
    [pytest.param(name, marks=[pytest.mark.java] if name == "java" else []) for name in WRITERS],
)
def test_an_idempotent_producer_writes_with_its_id(client: str, broker: RunningBroker) -> None:
    if reason := CLIENTS[client].why_absent():
        pytest.skip(reason)
    topic = f"idempotent-{client}"

    WRITERS[client](broker.bootstrap, topic)

    header = peek_header((broker.data_dir / f"{topic}-0" / f"{0:020}.log").read_bytes(), 0)
    assert header is not None
    assert (header.producer_id >= 0, header.base_sequence, header.record_count) == (True, 0, 1)


def _confluent_leads(bootstrap: str, topic: str) -> tuple[Names, int, Names]:
    admin = ck_admin.AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([ck_admin.NewTopic(topic, 1, 1)])[topic].result(_WAIT_S)
    admin.create_partitions([ck_admin.NewPartitions(topic, 3)])[topic].result(_WAIT_S)
    listed = admin.list_topics(timeout=_WAIT_S).topics
    admin.delete_topics([topic])[topic].result(_WAIT_S)
    return [*listed], len(listed[topic].partitions), [*admin.list_topics(timeout=_WAIT_S).topics]


def _kafka_python_leads(bootstrap: str, topic: str) -> tuple[Names, int, Names]:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        admin.create_topics({topic: {"num_partitions": 1, "replication_factor": 1}})
        admin.create_partitions({topic: 3})
        listed = admin.list_topics()
        partitions = len(admin.describe_topics([topic])[0]["partitions"])
        admin.delete_topics([topic])
        return listed, partitions, admin.list_topics()
    finally:
        admin.close()


def _aiokafka_leads(bootstrap: str, topic: str) -> tuple[Names, int, Names]:
    async def lead() -> tuple[Names, int, Names]:
        admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        await admin.start()
        try:
            await admin.create_topics([AiokafkaNewTopic(topic, 1, 1)])
            await admin.create_partitions({topic: AiokafkaNewPartitions(3)})
            listed = await admin.list_topics()
            partitions = len((await admin.describe_topics([topic]))[0]["partitions"])
            await admin.delete_topics([topic])
            return listed, partitions, await admin.list_topics()
        finally:
            await admin.close()

    return asyncio.run(lead())


LEADERS: dict[str, Callable[[str, str], tuple[Names, int, Names]]] = {
    "confluent": _confluent_leads,
    "kafka-python": _kafka_python_leads,
    "aiokafka": _aiokafka_leads,
}


@pytest.mark.feature("{client}", "topic admin")
@pytest.mark.parametrize("client", LEADERS)
def test_an_admin_client_leads_a_topic_through_its_life(client: str, broker: RunningBroker) -> None:
    topic = f"led-{uuid.uuid4()}"

    listed, partitions, left = LEADERS[client](broker.bootstrap, topic)

    assert topic in listed
    assert partitions == 3
    assert topic not in left
