"""What administrators ask of groups: list, describe, positions, move them, delete."""

import asyncio
import re
import warnings
from collections.abc import Callable
from typing import Any

import confluent_kafka as ck
import pytest
from aiokafka.admin import AIOKafkaAdminClient
from confluent_kafka.admin import AdminClient
from tests.interop.groups.group import Group
from tests.interop.groups.kinds import KINDS

from headrace.kafka.tools import run_tool

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaAdminClient

CONSUMER_GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
_ASK_S = 120


@pytest.fixture
def used_group(new_group: Callable[..., Group]) -> Group:
    """A group that has read twenty messages of two partitions; its member has left."""
    group = new_group(partitions=2)
    group.numbers.write(20)
    member = group.start(KINDS["confluent-range"])
    group.wait_for_numbers(20)
    group.leave(member)
    group.wait_empty()
    return group


@pytest.mark.feature("confluent", "group admin")
def test_confluent_kafka_administers_a_group(used_group: Group) -> None:
    admin = AdminClient({"bootstrap.servers": used_group.engine.bootstrap})
    name, topic = used_group.group_id, used_group.topic

    described = used_group.describe()
    moved = [ck.TopicPartition(topic, 0, 3)]
    admin.alter_consumer_group_offsets([ck.ConsumerGroupTopicPartitions(name, moved)])[name].result(
        _ASK_S
    )
    after_move = used_group.committed()
    used_group.numbers.write(2)
    again = used_group.start(KINDS["confluent-range"])
    used_group.journal.wait_until("it reads from there", lambda: again.processed_count == 9)
    with pytest.raises(ck.KafkaException) as not_empty:
        admin.delete_consumer_groups([name])[name].result(_ASK_S)
    used_group.leave(again)
    admin.delete_consumer_groups([name])[name].result(_ASK_S)
    left = [each.group_id for each in admin.list_consumer_groups().result(_ASK_S).valid]

    assert described.state == ck.ConsumerGroupState.EMPTY
    assert after_move == {0: 3, 1: 10}
    assert not_empty.value.args[0].code() == ck.KafkaError.NON_EMPTY_GROUP
    assert name not in left


@pytest.mark.feature("kafka-python", "group admin")
def test_kafka_python_administers_a_group(used_group: Group) -> None:
    admin = KafkaAdminClient(bootstrap_servers=used_group.engine.bootstrap)
    name = used_group.group_id
    try:
        listed = admin.list_groups()
        described = admin.describe_groups([name])
        offsets = admin.list_group_offsets({name: None})
        admin.delete_groups([name])
        left = admin.list_groups()
    finally:
        admin.close()

    assert name in str(listed)
    assert "Empty" in str(described)
    assert str(offsets).count("10") >= 2
    assert name not in str(left)


@pytest.mark.feature("aiokafka", "group admin")
def test_aiokafka_administers_a_group(used_group: Group) -> None:
    name = used_group.group_id

    async def ask() -> tuple[Any, dict[int, int]]:
        admin = AIOKafkaAdminClient(bootstrap_servers=used_group.engine.bootstrap)
        await admin.start()
        try:
            listed = await admin.list_consumer_groups()
            offsets = await admin.list_consumer_group_offsets(name)
        finally:
            await admin.close()
        return listed, {key.partition: value.offset for key, value in offsets.items()}

    listed, offsets = asyncio.run(ask())

    assert (name, "consumer") in listed
    assert offsets == {0: 10, 1: 10}


@pytest.mark.slow
@pytest.mark.java
@pytest.mark.usefixtures("needs_java")
@pytest.mark.feature("java", "group admin")
def test_kafka_consumer_groups_leads_a_group_through_its_life(used_group: Group) -> None:
    one = ("--group", used_group.group_id)

    listed = _tool(used_group, "--list")
    described = _tool(used_group, "--describe", *one)
    state = _tool(used_group, "--describe", *one, "--state")
    dry = _tool(used_group, *_reset(used_group, "--to-earliest"), "--dry-run")
    _tool(used_group, *_reset(used_group, "--shift-by", "-4"), "--execute")
    after_reset = used_group.committed()
    member = used_group.start(KINDS["confluent-range"])
    used_group.wait_settled(members=1)
    members = _tool(used_group, "--describe", *one, "--members", "--verbose")
    used_group.journal.wait_until("it reads from there", lambda: member.processed_count == 8)
    used_group.leave(member)
    used_group.wait_empty()
    offsets = ("--delete-offsets", "--topic", f"{used_group.topic}:1")
    deleted_offsets = _tool(used_group, *one, *offsets)
    after_delete = used_group.committed()
    deleted = _tool(used_group, "--delete", *one)
    left = _tool(used_group, "--list")

    assert used_group.group_id in listed.splitlines()
    rows = re.findall(
        rf"{used_group.group_id} +{used_group.topic} +(\d) +(\d+) +(\d+) +(\d+)", described
    )
    assert sorted(rows) == [("0", "10", "10", "0"), ("1", "10", "10", "0")]
    assert " Empty " in state
    assert re.findall(rf"{used_group.topic} +\d +(\d+)", dry) == ["0", "0"]
    assert after_reset == {0: 6, 1: 6}
    assert re.search(rf"rdkafka-\S+ +\S+ +rdkafka +2 .*{used_group.topic}[:(]", members)
    assert "Successful" in deleted_offsets
    assert after_delete == {0: 10}
    assert f"('{used_group.group_id}') was successful" in deleted
    assert used_group.group_id not in left.splitlines()


def _reset(group: Group, *where: str) -> tuple[str, ...]:
    return ("--reset-offsets", "--group", group.group_id, "--topic", group.topic, *where)


def _tool(group: Group, *arguments: str) -> str:
    answer = run_tool(
        CONSUMER_GROUPS,
        "--bootstrap-server",
        group.engine.bootstrap,
        *arguments,
        "--timeout",
        "30000",
    )
    assert answer.return_code == 0, answer.stdout + answer.stderr
    return answer.stdout
