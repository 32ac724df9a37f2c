"""Which request versions use the flexible encoding (KIP-482), by API key.

A request is flexible from the given version on: its header is v2 and its
response header v1. ApiVersions answers with header v0 all the same (KIP-511).
"""

from headrace.protocol.errors import WireError

PRODUCE, FETCH, METADATA, API_VERSIONS = 0, 1, 3, 18

FIRST_FLEXIBLE: dict[int, int] = {
    PRODUCE: 9,
    FETCH: 12,
    2: 6,  # ListOffsets
    METADATA: 9,
    8: 8,  # OffsetCommit
    9: 6,  # OffsetFetch
    10: 3,  # FindCoordinator
    11: 6,  # JoinGroup
    12: 4,  # Heartbeat
    13: 4,  # LeaveGroup
    14: 4,  # SyncGroup
    15: 5,  # DescribeGroups
    16: 3,  # ListGroups
    API_VERSIONS: 3,
    19: 5,  # CreateTopics
    20: 4,  # DeleteTopics
    21: 2,  # DeleteRecords
    22: 2,  # InitProducerId
    23: 4,  # OffsetForLeaderEpoch
    32: 4,  # DescribeConfigs
    33: 2,  # AlterConfigs
    34: 2,  # AlterReplicaLogDirs
    35: 2,  # DescribeLogDirs
    37: 2,  # CreatePartitions
    42: 2,  # DeleteGroups
    43: 2,  # ElectLeaders
    44: 1,  # IncrementalAlterConfigs
    45: 0,  # AlterPartitionReassignments
    46: 0,  # ListPartitionReassignments
    47: 1,  # OffsetDelete
    55: 0,  # DescribeQuorum
    60: 0,  # DescribeCluster
    68: 0,  # ConsumerGroupHeartbeat
    69: 0,  # ConsumerGroupDescribe
    74: 0,  # ListConfigResources
    75: 0,  # DescribeTopicPartitions
}


def is_flexible(api_key: int, version: int) -> bool:
    """Tell whether requests of this API and version use the flexible encoding."""
    try:
        return version >= FIRST_FLEXIBLE[api_key]
    except KeyError:
        raise WireError(f"unknown API key {api_key}") from None
