"""Who is the active controller, and how far the others follow: DescribeQuorum (55)."""

from typing import NamedTuple

from kio.schema.describe_quorum.v1.request import DescribeQuorumRequest, PartitionData, TopicData
from kio.schema.describe_quorum.v1.response import DescribeQuorumResponse
from kio.schema.errors import ErrorCode
from kio.schema.types import TopicName
from kio.static.primitive import i32

from headrace.client.addresses import parse_addresses
from headrace.kafka.wire import WireConnection, ask_any

_METADATA_LOG = TopicName("__cluster_metadata")


class Quorum(NamedTuple):
    """The controllers: who leads, in which epoch, and by how many records the others lag."""

    leader: int
    epoch: int
    lag_by_voter: dict[int, int]


def active_controller(bootstrap: str, timeout_s: float = 10) -> int:
    """Return the node that is the active controller now; dead brokers may be among those asked."""
    return quorum(bootstrap, timeout_s).leader


def quorum(bootstrap: str, timeout_s: float = 10) -> Quorum:
    """Return what the active controller says of its quorum; EngineError when none is elected."""
    return ask_any(parse_addresses(bootstrap), _ask, timeout_s)


def _ask(connection: WireConnection) -> Quorum | None:
    metadata = TopicData(
        topic_name=_METADATA_LOG, partitions=(PartitionData(partition_index=i32(0)),)
    )
    answer: DescribeQuorumResponse = connection.ask(DescribeQuorumRequest(topics=(metadata,)))
    if answer.error_code is not ErrorCode.none or not answer.topics:
        return None
    found = answer.topics[0].partitions[0]
    if found.error_code is not ErrorCode.none or found.leader_id < 0:
        return None  # between two leaders: ask again
    end = max((voter.log_end_offset for voter in found.current_voters), default=0)
    lags = {int(each.replica_id): int(end - each.log_end_offset) for each in found.current_voters}
    return Quorum(int(found.leader_id), int(found.leader_epoch), lags)
