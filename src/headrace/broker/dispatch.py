"""The one table of Kafka APIs and versions that this broker serves; ApiVersions comes from it.

Handler modules are imported when the first request for them comes, so that a
broker is ready before it has loaded message types nobody asked for.
"""

from importlib import import_module
from typing import Any, NamedTuple

from headrace.protocol.versions import API_VERSIONS, FETCH, METADATA, PRODUCE


class Api(NamedTuple):
    """One API: its key, Kafka's name, the versions served, and its file in `handlers`."""

    key: int
    name: str
    versions: range
    module: str
    seen_as: int | None = None
    sees_produced: bool = True  # what was produced before on any connection is in its answer

    @property
    def waits_for_others(self) -> bool:
        """Its answer may need a request that comes behind it on the same connection."""
        return self.key in (JOIN_GROUP, SYNC_GROUP)

    @property
    def schema_version(self) -> int:
        """The version whose types the handler knows: the newest, unless that lost a field."""
        return self.versions[-1] if self.seen_as is None else self.seen_as

    def handler(self) -> Any:
        """The module's `handle`."""
        return import_module(f"headrace.broker.handlers.{self.module}").handle


JOIN_GROUP = 11
SYNC_GROUP = 14

# Versions are those Apache Kafka 4.3.1 advertises. Produce 0-2 are advertised,
# as Kafka does, because old librdkafka otherwise turns compression off
# (KAFKA-18659); requests with them close the connection, as in Kafka.
APIS: dict[int, Api] = {
    api.key: api
    for api in (
        Api(PRODUCE, "Produce", range(0, 14), "produce"),
        Api(FETCH, "Fetch", range(4, 19), "fetch"),
        Api(2, "ListOffsets", range(1, 12), "list_offsets"),
        Api(METADATA, "Metadata", range(0, 14), "metadata", seen_as=10),
        Api(8, "OffsetCommit", range(2, 11), "offset_commit", sees_produced=False),
        Api(9, "OffsetFetch", range(1, 11), "offset_fetch", sees_produced=False),
        Api(10, "FindCoordinator", range(0, 7), "find_coordinator", sees_produced=False),
        Api(JOIN_GROUP, "JoinGroup", range(0, 10), "join_group", sees_produced=False),
        Api(12, "Heartbeat", range(0, 5), "heartbeat", sees_produced=False),
        Api(13, "LeaveGroup", range(0, 6), "leave_group", sees_produced=False),
        Api(SYNC_GROUP, "SyncGroup", range(0, 6), "sync_group", sees_produced=False),
        Api(15, "DescribeGroups", range(0, 7), "describe_groups", sees_produced=False),
        Api(16, "ListGroups", range(0, 6), "list_groups", sees_produced=False),
        Api(API_VERSIONS, "ApiVersions", range(0, 5), "api_versions"),
        Api(19, "CreateTopics", range(2, 8), "create_topics"),
        Api(20, "DeleteTopics", range(1, 7), "delete_topics"),
        Api(21, "DeleteRecords", range(0, 3), "delete_records"),
        Api(22, "InitProducerId", range(0, 6), "init_producer_id"),
        Api(23, "OffsetForLeaderEpoch", range(2, 5), "offset_for_leader_epoch"),
        Api(32, "DescribeConfigs", range(1, 5), "describe_configs"),
        Api(33, "AlterConfigs", range(0, 3), "alter_configs"),
        Api(34, "AlterReplicaLogDirs", range(1, 3), "alter_replica_log_dirs"),
        Api(35, "DescribeLogDirs", range(1, 6), "describe_log_dirs"),
        Api(37, "CreatePartitions", range(0, 4), "create_partitions"),
        Api(42, "DeleteGroups", range(0, 3), "delete_groups", sees_produced=False),
        Api(43, "ElectLeaders", range(0, 3), "elect_leaders"),
        Api(44, "IncrementalAlterConfigs", range(0, 2), "incremental_alter_configs"),
        Api(45, "AlterPartitionReassignments", range(0, 2), "alter_partition_reassignments"),
        Api(46, "ListPartitionReassignments", range(0, 1), "list_partition_reassignments"),
        Api(47, "OffsetDelete", range(0, 1), "offset_delete", sees_produced=False),
        Api(55, "DescribeQuorum", range(0, 3), "describe_quorum"),
        Api(60, "DescribeCluster", range(0, 3), "describe_cluster"),
        Api(
            68,
            "ConsumerGroupHeartbeat",
            range(0, 2),
            "consumer_group_heartbeat",
            sees_produced=False,
        ),
        Api(
            69,
            "ConsumerGroupDescribe",
            range(0, 2),
            "consumer_group_describe",
            sees_produced=False,
        ),
        Api(74, "ListConfigResources", range(0, 2), "list_config_resources"),
        Api(75, "DescribeTopicPartitions", range(0, 1), "describe_topic_partitions"),
    )
}
API_NAMES = {api.key: api.name for api in APIS.values()}
