"""The schemas of `__consumer_offsets` as Kafka 4.3.1 has them, for printing any record as JSON.

Unlike the broker's own codec this keeps Kafka's field names, the version as it is in the file,
and the kinds of groups that the broker does not keep.
"""

from headrace.cli.log.json_schema import (
    MAX_VERSION,
    Field,
    Read,
    Schema,
    Tag,
    blob,
    fields_of,
    int8,
    int16,
    int32,
    int64,
    list_of,
    nullable,
    struct,
    text,
    uint16,
    uuid,
)

_NO_UUID = "A" * 22
_EPOCHS = {0: Tag("assignmentEpochs", list_of(int32), [])}
_TIMESTAMP = {0: Tag("assignmentTimestamp", int64, 0)}
_NAMED = struct(("key", text), ("value", text))
_TOPIC = struct(("topicId", uuid), ("partitions", list_of(int32)))
_TOPIC_WITH_EPOCHS = struct(("topicId", uuid), ("partitions", list_of(int32)), tags=_EPOCHS)
_NAMED_TOPIC = struct(("topicId", uuid), ("topicName", text), ("partitions", list_of(int32)))
_TASKS = list_of(struct(("subtopologyId", text), ("partitions", list_of(int32))))
_TASKS_WITH_EPOCHS = list_of(
    struct(("subtopologyId", text), ("partitions", list_of(int32)), tags=_EPOCHS)
)
_INTERNAL_TOPIC = struct(
    ("name", text),
    ("partitions", int32),
    ("replicationFactor", int16),
    ("topicConfigs", list_of(_NAMED)),
)

_GROUP_KEY = fields_of(("groupId", text))
_MEMBER_KEY = fields_of(("groupId", text), ("memberId", text))
_OFFSET_KEY = fields_of(("group", text), ("topic", text), ("partition", int32))


def _read_classic_member(version: int) -> Read:
    members = (
        Field("memberId", text),
        Field("groupInstanceId", text, since=3),
        Field("clientId", text),
        Field("clientHost", text),
        Field("rebalanceTimeout", int32, since=1),
        Field("sessionTimeout", int32),
        Field("subscription", blob),
        Field("assignment", blob),
    )
    schema = Schema(members)
    return lambda fields: schema.read(fields, version)


_CLASSIC_GROUP = Schema(
    (
        Field("protocolType", text),
        Field("generation", int32),
        Field("protocol", text),
        Field("leader", text),
        Field("currentStateTimestamp", int64, since=2),
        *(
            Field("members", list_of(_read_classic_member(version)), version, version)
            for version in range(5)
        ),
    ),
    versions=range(5),
    flexible_since=4,
)
_OFFSET_COMMIT = Schema(
    (
        Field("offset", int64),
        Field("leaderEpoch", int32, since=3),
        Field("metadata", text),
        Field("commitTimestamp", int64),
        Field("expireTimestamp", int64, since=1, until=1),
    ),
    {0: Tag("topicId", uuid, _NO_UUID)},
    range(5),
    4,
)
_CLASSIC_PROTOCOLS = struct(
    ("sessionTimeoutMs", int32),
    ("supportedProtocols", list_of(struct(("name", text), ("metadata", blob)))),
)
_CONSUMER_MEMBER = Schema(
    fields_of(
        ("instanceId", text),
        ("rackId", text),
        ("clientId", text),
        ("clientHost", text),
        ("subscribedTopicNames", list_of(text)),
        ("subscribedTopicRegex", text),
        ("rebalanceTimeoutMs", int32),
        ("serverAssignor", text),
    ),
    {
        0: Tag(
            "classicMemberMetadata",
            nullable(_CLASSIC_PROTOCOLS),
            {"sessionTimeoutMs": 0, "supportedProtocols": []},
        )
    },
)
_MEMBER_STATE = (("memberEpoch", int32), ("previousMemberEpoch", int32), ("state", int8))
_TASK_LISTS = ("activeTasks", "standbyTasks", "warmupTasks")
_SUBTOPOLOGY = struct(
    ("subtopologyId", text),
    ("sourceTopics", list_of(text)),
    ("sourceTopicRegex", list_of(text)),
    ("stateChangelogTopics", list_of(_INTERNAL_TOPIC)),
    ("repartitionSinkTopics", list_of(text)),
    ("repartitionSourceTopics", list_of(_INTERNAL_TOPIC)),
    (
        "copartitionGroups",
        list_of(
            struct(
                ("sourceTopics", list_of(int16)),
                ("sourceTopicRegex", list_of(int16)),
                ("repartitionSourceTopics", list_of(int16)),
            )
        ),
    ),
)
_RACKS = struct(("partition", int32), ("racks", list_of(text)))
_TOPIC_METADATA = struct(
    ("topicId", uuid),
    ("topicName", text),
    ("numPartitions", int32),
    ("partitionMetadata", list_of(_RACKS)),
)
_TARGET_EPOCH = Schema(fields_of(("assignmentEpoch", int32)), _TIMESTAMP)
_TARGET = Schema(fields_of(("topicPartitions", list_of(_TOPIC))))

# The number that a key starts with -> what follows it, and the value.
SCHEMAS: dict[int, tuple[tuple[Field, ...], Schema]] = {
    0: (_OFFSET_KEY, Schema(_OFFSET_COMMIT.fields, flexible_since=MAX_VERSION)),
    1: (_OFFSET_KEY, _OFFSET_COMMIT),
    2: (fields_of(("group", text)), _CLASSIC_GROUP),
    3: (
        _GROUP_KEY,
        Schema(fields_of(("epoch", int32)), {0: Tag("metadataHash", int64, 0)}),
    ),
    4: (_GROUP_KEY, Schema(fields_of(("topics", list_of(_TOPIC_METADATA))))),
    5: (_MEMBER_KEY, _CONSUMER_MEMBER),
    6: (_GROUP_KEY, _TARGET_EPOCH),
    7: (_MEMBER_KEY, _TARGET),
    8: (
        _MEMBER_KEY,
        Schema(
            fields_of(
                *_MEMBER_STATE,
                ("assignedPartitions", list_of(_TOPIC_WITH_EPOCHS)),
                ("partitionsPendingRevocation", list_of(_TOPIC_WITH_EPOCHS)),
            )
        ),
    ),
    10: (
        _MEMBER_KEY,
        Schema(
            fields_of(
                ("rackId", text),
                ("clientId", text),
                ("clientHost", text),
                ("subscribedTopicNames", list_of(text)),
            )
        ),
    ),
    11: (_GROUP_KEY, Schema(fields_of(("epoch", int32), ("metadataHash", int64)))),
    12: (_GROUP_KEY, _TARGET_EPOCH),
    13: (_MEMBER_KEY, _TARGET),
    14: (_MEMBER_KEY, Schema(fields_of(*_MEMBER_STATE, ("assignedPartitions", list_of(_TOPIC))))),
    15: (
        _GROUP_KEY,
        Schema(
            fields_of(
                ("initializingTopics", list_of(_NAMED_TOPIC)),
                ("initializedTopics", list_of(_NAMED_TOPIC)),
                ("deletingTopics", list_of(struct(("topicId", uuid), ("topicName", text)))),
            )
        ),
    ),
    16: (
        fields_of(("groupId", text), ("regularExpression", text)),
        Schema(fields_of(("topics", list_of(text)), ("version", int64), ("timestamp", int64))),
    ),
    17: (
        _GROUP_KEY,
        Schema(
            fields_of(("epoch", int32), ("metadataHash", int64)),
            {
                0: Tag("validatedTopologyEpoch", int32, -1),
                1: Tag("lastAssignmentConfigs", list_of(_NAMED), []),
            },
        ),
    ),
    19: (
        _MEMBER_KEY,
        Schema(
            fields_of(
                ("instanceId", text),
                ("rackId", text),
                ("clientId", text),
                ("clientHost", text),
                ("rebalanceTimeoutMs", int32),
                ("topologyEpoch", int32),
                ("processId", text),
                ("userEndpoint", nullable(struct(("host", text), ("port", uint16)))),
                ("clientTags", list_of(_NAMED)),
            )
        ),
    ),
    20: (_GROUP_KEY, _TARGET_EPOCH),
    21: (_MEMBER_KEY, Schema(fields_of(*((name, _TASKS) for name in _TASK_LISTS)))),
    22: (
        _MEMBER_KEY,
        Schema(
            fields_of(
                *_MEMBER_STATE,
                *((name, _TASKS_WITH_EPOCHS) for name in _TASK_LISTS),
                *((f"{name}PendingRevocation", _TASKS_WITH_EPOCHS) for name in _TASK_LISTS),
            )
        ),
    ),
    23: (
        _GROUP_KEY,
        Schema(fields_of(("epoch", int32), ("subtopologies", list_of(_SUBTOPOLOGY)))),
    ),
}
