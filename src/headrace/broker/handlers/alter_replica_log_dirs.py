"""AlterReplicaLogDirs (34).

v2  flexible encoding

There is one log directory and all partitions lie in it already: to move one there is done, to
move one elsewhere is refused. As in Kafka the path must be written as DescribeLogDirs tells it,
it is looked at before the topic is, and of a partition named twice the last wish counts.
"""

from kio.schema.alter_replica_log_dirs.v2.request import AlterReplicaLogDirsRequest
from kio.schema.alter_replica_log_dirs.v2.response import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from kio.schema.errors import ErrorCode
from kio.schema.types import TopicName
from kio.static.primitive import i32

from headrace.broker.handlers.throttle import NO_THROTTLE
from headrace.broker.state import BrokerState, RequestContext


def handle(
    request: AlterReplicaLogDirsRequest, broker: BrokerState, context: RequestContext
) -> AlterReplicaLogDirsResponse:
    """Accept for each partition the directory it lies in."""
    wishes: dict[str, dict[int, str]] = {}
    for directory in request.dirs:
        for topic in directory.topics:
            for partition in topic.partitions:
                wishes.setdefault(topic.name, {})[partition] = directory.path
    return AlterReplicaLogDirsResponse(
        throttle_time=NO_THROTTLE,
        results=tuple(
            AlterReplicaLogDirTopicResult(
                topic_name=TopicName(name),
                partitions=tuple(
                    AlterReplicaLogDirPartitionResult(
                        partition_index=i32(partition),
                        error_code=_verdict(name, partition, path, broker),
                    )
                    for partition, path in paths.items()
                ),
            )
            for name, paths in wishes.items()
        ),
    )


def _verdict(topic: str, partition: int, path: str, broker: BrokerState) -> ErrorCode:
    topics = broker.topics
    if path != str(topics.data_dir.absolute()):
        return ErrorCode.log_dir_not_found
    if not (topics.has(topic) and 0 <= partition < topics.get(topic).partition_count):
        return ErrorCode.unknown_topic_or_partition
    return ErrorCode.none
