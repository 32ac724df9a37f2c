"""ElectLeaders (43).

v1  election_type in the request; an error code for the whole answer (KIP-460)
v2  flexible encoding

Every partition has the one leader it can have, so no election is ever held. When all partitions
are meant, Kafka names every topic and leaves out the partitions that need no election.
The timeout is not needed: there is nothing to wait for.
"""

from collections.abc import Callable, Iterable

from kio.schema.elect_leaders.v2.request import ElectLeadersRequest, TopicPartitions
from kio.schema.elect_leaders.v2.response import (
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from kio.schema.errors import ErrorCode
from kio.schema.types import TopicName

from headrace.broker.handlers.throttle import NO_THROTTLE
from headrace.broker.state import BrokerState, RequestContext
from headrace.broker.turns import in_slices

PREFERRED, UNCLEAN = 0, 1

_Verdict = tuple[ErrorCode, str]


async def handle(
    request: ElectLeadersRequest, broker: BrokerState, context: RequestContext
) -> ElectLeadersResponse:
    """Say of each partition asked for that it has its leader, or that it is not there."""
    asked = request.topic_partitions
    if request.election_type not in (PREFERRED, UNCLEAN):
        refusal = ErrorCode.invalid_request, f"Unknown election type {request.election_type}"
        results = await _results(asked or (), lambda topic, partition: refusal)
        return _answer(results, ErrorCode.invalid_request)
    if asked is None:
        everything = in_slices(broker.topics.all())
        return _answer([_no_election(topic.name) async for topic in everything])
    results = await _results(asked, lambda topic, partition: _verdict(topic, partition, broker))
    return _answer(results)


def _answer(
    results: Iterable[ReplicaElectionResult], error_code: ErrorCode = ErrorCode.none
) -> ElectLeadersResponse:
    return ElectLeadersResponse(
        throttle_time=NO_THROTTLE, error_code=error_code, replica_election_results=tuple(results)
    )


def _no_election(name: str) -> ReplicaElectionResult:
    return ReplicaElectionResult(topic=TopicName(name), partition_result=())


async def _results(
    asked: Iterable[TopicPartitions], judge: Callable[[str, int], _Verdict]
) -> list[ReplicaElectionResult]:
    results = []
    for topic in asked:
        judged = []
        async for partition in in_slices(topic.partitions):
            code, message = judge(topic.topic, partition)
            judged.append(
                PartitionResult(partition_id=partition, error_code=code, error_message=message)
            )
        results.append(ReplicaElectionResult(topic=topic.topic, partition_result=tuple(judged)))
    return results


def _verdict(topic: str, partition: int, broker: BrokerState) -> _Verdict:
    if not broker.topics.has(topic):
        return ErrorCode.unknown_topic_or_partition, f"No such topic as {topic}"
    if not 0 <= partition < broker.topics.get(topic).partition_count:
        return ErrorCode.unknown_topic_or_partition, f"No such partition as {topic}-{partition}"
    return ErrorCode.election_not_needed, "Leader election not needed for topic partition."
