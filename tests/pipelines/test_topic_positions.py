from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from headrace.client.bus import Bus
from headrace.pipelines.errors import SourceError
from headrace.pipelines.topic_positions import BusSilentError, TopicPositions
from headrace.testing import RunningBroker, running_broker


@pytest.fixture
def broker() -> Iterator[RunningBroker]:
    with running_broker(watched=True) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        admin.create_topics([NewTopic("t", 1)])["t"].result(120)
        yield broker


@pytest.mark.parametrize("error", ["NOT_LEADER_OR_FOLLOWER", "OFFSET_NOT_AVAILABLE"])
def test_an_election_is_waited_for(broker: RunningBroker, error: str) -> None:
    broker.faults.fail("ListOffsets", error, times=3)

    assert TopicPositions(Bus(broker.bootstrap)).ends([("t", 0)]) == {("t", 0): 0}
    assert len(broker.requests.of("ListOffsets")) >= 4


def test_a_partition_that_gets_no_leader_may_be_asked_for_again(broker: RunningBroker) -> None:
    broker.faults.fail("ListOffsets", "NOT_LEADER_OR_FOLLOWER", times=None)

    with pytest.raises(BusSilentError, match=broker.bootstrap) as caught:
        TopicPositions(Bus(broker.bootstrap), timeout_s=0.5).ends([("t", 0)])

    assert caught.value.is_retriable


def test_an_answer_that_says_no_is_not_asked_for_again(broker: RunningBroker) -> None:
    broker.faults.fail("ListOffsets", "TOPIC_AUTHORIZATION_FAILED", times=None)

    with pytest.raises(SourceError) as caught:
        TopicPositions(Bus(broker.bootstrap)).ends([("t", 0)])

    assert not isinstance(caught.value, BusSilentError)
