from typing import Any

import pytest
from kio.schema.errors import ErrorCode
from kio.schema.list_partition_reassignments.v0.request import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from tests.at_once import at_once
from tests.broker.handlers.conftest import VERSIONS

from headrace.broker.state import BrokerState

LIST_PARTITION_REASSIGNMENTS = 46


@pytest.mark.parametrize("version", VERSIONS["list_partition_reassignments"])
@pytest.mark.parametrize("names", [None, (), ("t",), ("t", "nope")])
def test_none_is_ever_under_way(
    names: tuple[str, ...] | None, version: int, broker: BrokerState, ask: Any
) -> None:
    at_once(broker.topics.create("t", 1, {}))
    topics = names and tuple(
        ListPartitionReassignmentsTopics(name=name, partition_indexes=(0, 7)) for name in names
    )

    answer = ask(
        LIST_PARTITION_REASSIGNMENTS, ListPartitionReassignmentsRequest(topics=topics), version
    )

    assert (answer.error_code, answer.error_message, answer.topics) == (ErrorCode.none, None, ())
