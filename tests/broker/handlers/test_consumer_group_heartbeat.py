import dataclasses
import datetime
from typing import Any

import pytest
from kio.schema.errors import ErrorCode
from tests.at_once import at_once
from tests.broker.handlers.group_requests import CONSUMER_HEARTBEAT, a_beat, topic_id_of

from headrace.broker.state import BrokerState


@pytest.fixture(autouse=True)
def topic(broker: BrokerState) -> None:
    at_once(broker.topics.create("t", 2, {}))


@pytest.mark.parametrize("version", [0, 1])
def test_who_joins_is_told_what_to_read(ask: Any, broker: BrokerState, version: int) -> None:
    answer = ask(CONSUMER_HEARTBEAT, a_beat(member_id="m" if version else ""), version)

    assert (answer.error_code, answer.error_message) == (ErrorCode.none, None)
    assert answer.member_id == "m" if version else len(answer.member_id) == 22
    assert answer.member_epoch > 0
    assert answer.heartbeat_interval == datetime.timedelta(seconds=5)
    (assigned,) = answer.assignment.topic_partitions
    assert (assigned.topic_id, assigned.partitions) == (topic_id_of(broker), (0, 1))


def test_nothing_new_is_said_as_nothing(ask: Any) -> None:
    epoch = ask(CONSUMER_HEARTBEAT, a_beat()).member_epoch

    answer = ask(CONSUMER_HEARTBEAT, a_beat(epoch=epoch))

    assert (answer.error_code, answer.assignment) == (ErrorCode.none, None)


def test_who_leaves_is_gone(ask: Any) -> None:
    ask(CONSUMER_HEARTBEAT, a_beat())

    assert ask(CONSUMER_HEARTBEAT, a_beat(epoch=-1)).member_epoch == -1
    assert ask(CONSUMER_HEARTBEAT, a_beat(epoch=1)).error_code == ErrorCode.unknown_member_id


@pytest.mark.parametrize(
    ("changes", "error_code", "words"),
    [
        ({"group_id": ""}, ErrorCode.invalid_request, "GroupId"),
        ({"member_id": ""}, ErrorCode.invalid_request, "MemberId"),
        ({"member_epoch": 3}, ErrorCode.group_id_not_found, "Consumer group g not found."),
        ({"server_assignor": "none"}, ErrorCode.unsupported_assignor, "none"),
    ],
)
def test_a_refusal_says_why(ask: Any, changes: Any, error_code: ErrorCode, words: str) -> None:
    request = dataclasses.replace(a_beat(), **changes)

    answer = ask(CONSUMER_HEARTBEAT, request)

    assert answer.error_code == error_code
    assert words in answer.error_message
    assert (answer.member_id, answer.member_epoch) == (None, 0)
