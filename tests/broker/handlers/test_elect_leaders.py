from typing import Any

import pytest
from kio.schema.elect_leaders.v2.request import ElectLeadersRequest, TopicPartitions
from kio.schema.errors import ErrorCode
from tests.at_once import at_once
from tests.broker.handlers.conftest import VERSIONS

from headrace.broker.handlers.elect_leaders import PREFERRED, UNCLEAN
from headrace.broker.state import BrokerState

ELECT_LEADERS = 43
UNKNOWN = ErrorCode.unknown_topic_or_partition
NOT_NEEDED = ErrorCode.election_not_needed


@pytest.fixture(autouse=True)
def _topic(broker: BrokerState) -> None:
    at_once(broker.topics.create("t", 2, {}))


def a_request(
    *topics: tuple[str, tuple[int, ...]], election_type: int = PREFERRED
) -> ElectLeadersRequest:
    return ElectLeadersRequest(
        election_type=election_type,
        topic_partitions=tuple(
            TopicPartitions(topic=name, partitions=partitions) for name, partitions in topics
        ),
    )


def results_of(answer: Any) -> list[tuple[str, list[tuple[int, ErrorCode, str]]]]:
    return [
        (
            topic.topic,
            [
                (one.partition_id, one.error_code, one.error_message)
                for one in topic.partition_result
            ],
        )
        for topic in answer.replica_election_results
    ]


@pytest.mark.parametrize("version", VERSIONS["elect_leaders"])
def test_every_version_says_that_there_is_a_leader(version: int, ask: Any) -> None:
    answer = ask(ELECT_LEADERS, a_request(("t", (1, 0))), version)

    words = "Leader election not needed for topic partition."
    assert results_of(answer) == [("t", [(1, NOT_NEEDED, words), (0, NOT_NEEDED, words)])]
    if version >= 1:
        assert answer.error_code == ErrorCode.none


@pytest.mark.parametrize("election_type", [PREFERRED, UNCLEAN])
def test_what_is_not_there_has_no_election(election_type: int, ask: Any) -> None:
    asked = a_request(("t", (2, 0, -1)), ("nope", (0,)), election_type=election_type)

    (known, unknown) = results_of(ask(ELECT_LEADERS, asked))

    assert [(partition, code) for partition, code, _ in known[1]] == [
        (2, UNKNOWN),
        (0, NOT_NEEDED),
        (-1, UNKNOWN),
    ]
    assert known[1][0][2] == "No such partition as t-2"
    assert unknown == ("nope", [(0, UNKNOWN, "No such topic as nope")])


def test_of_all_partitions_only_those_that_needed_one_are_named(
    broker: BrokerState, ask: Any
) -> None:
    at_once(broker.topics.create("a", 1, {}))
    everything = ElectLeadersRequest(election_type=PREFERRED, topic_partitions=None)

    assert results_of(ask(ELECT_LEADERS, everything)) == [("a", []), ("t", [])]


def test_an_unknown_kind_of_election_is_refused_for_each_partition(ask: Any) -> None:
    answer = ask(ELECT_LEADERS, a_request(("t", (0,)), ("nope", (3,)), election_type=2))
    of_all = ask(ELECT_LEADERS, ElectLeadersRequest(election_type=2, topic_partitions=None))

    refused = ErrorCode.invalid_request
    assert (answer.error_code, of_all.error_code) == (refused, refused)
    assert results_of(answer) == [
        ("t", [(0, refused, "Unknown election type 2")]),
        ("nope", [(3, refused, "Unknown election type 2")]),
    ]
    assert results_of(of_all) == []
