"""What librdkafka has no call for, of one broker: its API versions, and what is on its disk.

Quick commands ask these, so nothing is imported here that the two do not need.
"""

from typing import TYPE_CHECKING

from kio.schema.api_versions.v0.request import ApiVersionsRequest
from kio.schema.describe_log_dirs.v1.request import DescribeLogDirsRequest

from headrace.client.librdkafka import Partition
from headrace.client.wire import WireConnection

if TYPE_CHECKING:
    from kio.schema.api_versions.v0.response import ApiVersionsResponse
    from kio.schema.describe_log_dirs.v1.response import DescribeLogDirsResponse


def api_versions(connection: WireConnection) -> dict[int, tuple[int, int]]:
    """Oldest and newest version of each API the broker serves, by API key."""
    answer: ApiVersionsResponse = connection.ask(ApiVersionsRequest())
    return {
        int(each.api_key): (int(each.min_version), int(each.max_version))
        for each in answer.api_keys
    }


def log_sizes(connection: WireConnection) -> dict[Partition, int]:
    """Bytes on the disk of this broker, by topic and partition."""
    answer: DescribeLogDirsResponse = connection.ask(DescribeLogDirsRequest(topics=None))
    return {
        (str(topic.name), int(each.partition_index)): int(each.partition_size)
        for directory in answer.results
        for topic in directory.topics
        for each in topic.partitions
        if not each.is_future_key
    }
