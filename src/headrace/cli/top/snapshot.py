"""One look at all topics and groups of a cluster, for `headrace top`.

Topics and groups that go while it looks are left out; only a broker that does not answer at all
is an error.
"""

import time
from concurrent.futures import Future
from typing import Any

from headrace.cli.groups.description import DEAD, state_name
from headrace.cli.top.rates import GroupLook, Look
from headrace.client.admin import Admin
from headrace.model import INTERNAL_TOPICS


def take_look(admin: Admin) -> Look:
    """Ask for everything at once; raises BusError when there is no answer."""
    metadata, timeout_s = admin.metadata(), admin.timeout_s
    led = [
        (name, number)
        for name, topic in metadata.topics.items()
        for number, partition in topic.partitions.items()
        if partition.leader >= 0 and name not in INTERNAL_TOPICS
    ]
    at_s = time.monotonic()
    ends = admin.end_offsets(led, is_partial=True)
    return Look(at_s, ends, admin.log_sizes(), _groups(admin.raw, timeout_s))


def _groups(admin: Any, timeout_s: float) -> dict[str, GroupLook]:
    from confluent_kafka import ConsumerGroupTopicPartitions

    listed = _result(admin.list_consumer_groups(request_timeout=timeout_s), timeout_s)
    names = sorted(group.group_id for group in listed.valid) if listed is not None else []
    if not names:
        return {}
    answers = admin.describe_consumer_groups(names, request_timeout=timeout_s)
    described_groups = {name: _result(answers[name], timeout_s) for name in names}
    # librdkafka asks for the offsets of one group at a time; all questions are out at once. None
    # goes to a coordinator that gave no description: see `group_facts.committed_offsets`.
    offsets = {
        name: admin.list_consumer_group_offsets(
            [ConsumerGroupTopicPartitions(name)], request_timeout=timeout_s
        )[name]
        for name, described in described_groups.items()
        if described is not None and state_name(described.state) != DEAD
    }
    groups = dict[str, GroupLook]()
    for name, future in offsets.items():
        described, committed = described_groups[name], _result(future, timeout_s)
        if committed is None:
            continue
        groups[name] = GroupLook(
            state_name(described.state),
            len(described.members),
            {
                (each.topic, each.partition): each.offset
                for each in committed.topic_partitions or ()
                if each.offset >= 0
            },
        )
    return groups


def _result(future: "Future[Any]", timeout_s: float) -> Any:
    """What was asked for, or None when it has gone meanwhile or cannot be had."""
    from confluent_kafka import KafkaException

    try:
        return future.result(timeout_s + 1)
    except (KafkaException, TimeoutError):
        return None
