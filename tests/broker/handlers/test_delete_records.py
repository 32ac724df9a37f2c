from typing import Any

import pytest
from kio.schema.delete_records.v2.request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kio.schema.errors import ErrorCode
from tests.at_once import at_once
from tests.broker.handlers.conftest import VERSIONS

from headrace.broker.handlers.throttle import NO_THROTTLE
from headrace.broker.state import BrokerState

DELETE_RECORDS = 21


def a_request(offset: int, topic: str = "t", partition: int = 0) -> DeleteRecordsRequest:
    row = DeleteRecordsPartition(partition_index=partition, offset=offset)
    return DeleteRecordsRequest(
        topics=(DeleteRecordsTopic(name=topic, partitions=(row,)),), timeout=NO_THROTTLE
    )


def the_row(answer: Any) -> Any:
    return answer.topics[0].partitions[0]


@pytest.fixture(autouse=True)
def _topic(broker: BrokerState, append: Any) -> None:
    at_once(broker.topics.create("t", 1, {}))
    append("t", 0, *[1_700_000_000_000] * 5)


@pytest.mark.parametrize("version", VERSIONS["delete_records"])
def test_every_version_moves_the_start_of_the_log(
    version: int, broker: BrokerState, ask: Any
) -> None:
    row = the_row(ask(DELETE_RECORDS, a_request(3), version))

    assert (row.error_code, row.low_watermark) == (ErrorCode.none, 3)
    assert broker.topics.log("t", 0).log_start_offset == 3


def test_minus_one_deletes_everything(broker: BrokerState, ask: Any) -> None:
    row = the_row(ask(DELETE_RECORDS, a_request(-1)))

    assert (row.error_code, row.low_watermark) == (ErrorCode.none, 5)
    assert broker.topics.log("t", 0).log_start_offset == 5


def test_an_offset_below_the_start_leaves_the_log_as_it_is(ask: Any) -> None:
    ask(DELETE_RECORDS, a_request(3))

    row = the_row(ask(DELETE_RECORDS, a_request(1)))

    assert (row.error_code, row.low_watermark) == (ErrorCode.none, 3)


@pytest.mark.parametrize("offset", [6, -2, 2**63 - 1])
def test_an_offset_that_is_not_there_is_out_of_range(
    offset: int, broker: BrokerState, ask: Any
) -> None:
    row = the_row(ask(DELETE_RECORDS, a_request(offset)))

    assert (row.error_code, row.low_watermark) == (ErrorCode.offset_out_of_range, -1)
    assert broker.topics.log("t", 0).log_start_offset == 0


def test_records_of_a_compacted_topic_stay(broker: BrokerState, ask: Any) -> None:
    at_once(broker.topics.create("compacted", 1, {"cleanup.policy": "compact"}))

    row = the_row(ask(DELETE_RECORDS, a_request(0, "compacted")))

    assert row.error_code == ErrorCode.policy_violation


def test_records_of_an_internal_topic_stay(broker: BrokerState, ask: Any) -> None:
    at_once(broker.topics.create("__consumer_offsets", 1, {}))

    row = the_row(ask(DELETE_RECORDS, a_request(0, "__consumer_offsets")))

    assert row.error_code == ErrorCode.invalid_topic_exception


@pytest.mark.parametrize(("topic", "partition"), [("nope", 0), ("t", 1)])
def test_an_unknown_partition_is_an_error(topic: str, partition: int, ask: Any) -> None:
    row = the_row(ask(DELETE_RECORDS, a_request(0, topic, partition)))

    assert row.error_code == ErrorCode.unknown_topic_or_partition
