"""Which settings act here, in one sentence each; every other one is accepted and reported only.

A test holds this list against the code: what stands here is read somewhere, and what the broker
reads stands here.
"""

from headrace.settings.catalogue import TOPIC
from headrace.settings.own import OWN_SETTINGS

TOPIC_EFFECTS = {
    "cleanup.policy": (
        "What happens to old segments: `delete` removes them by age and size; `compact` keeps the "
        "last record of each key, in internal topics so far."
    ),
    "compression.type": (
        "Batches are kept as the producer compressed them, which is what `producer` asks for; "
        "other values are reported and not applied."
    ),
    "delete.retention.ms": "How long compaction keeps a tombstone that it has seen.",
    "file.delete.delay.ms": "How long a removed segment's file stays on disk.",
    "flush.messages": "After this many messages a log is synced to disk.",
    "flush.ms": "After this time a message is synced to disk.",
    "index.interval.bytes": "Bytes of log between two entries of its offset index.",
    "internal.segment.bytes": "Segment size below the minimum of segment.bytes, for tests.",
    "max.message.bytes": "Largest batch that is taken in, as it comes from the producer.",
    "message.timestamp.after.max.ms": "How far ahead of the clock a message's time may lie.",
    "message.timestamp.before.max.ms": "How far behind the clock a message's time may lie.",
    "message.timestamp.type": "Whether a message keeps its producer's time or gets the broker's.",
    "min.cleanable.dirty.ratio": "Dirty part of a log, in bytes, from which on it is compacted.",
    "retention.bytes": "Size of a partition above which its oldest segments are removed.",
    "retention.ms": "Age above which segments are removed; -1 keeps them.",
    "segment.bytes": "Size at which a new segment is begun.",
    "segment.index.bytes": "Largest size of an index; a full one begins a new segment.",
    "segment.jitter.ms": "Random part taken off segment.ms, so that segments do not roll at once.",
    "segment.ms": "Age at which a new segment is begun.",
}

_BROKER_EFFECTS = {
    "advertised.listeners": "The address that clients are told to connect to.",
    "auto.create.topics.enable": "Whether a topic is created when a client first asks for it.",
    "broker.id": "The node's id: the old name of node.id.",
    "broker.rack": "The rack that clients are told this node is in.",
    "connections.max.idle.ms": "A connection that is silent for this long is closed.",
    "controller.listener.names": "Listeners for controllers: there are none here, so passed over.",
    "default.replication.factor": "Replicas of a topic created without a number: 1 is possible.",
    "delete.topic.enable": "Whether topics can be deleted.",
    "fetch.max.bytes": "Most that one fetch answers with, whatever the client asks for.",
    "group.consumer.assignment.interval.ms": "Time between two assignments of one group.",
    "group.consumer.assignors": "Assignors of the new protocol (KIP-848); the first by default.",
    "group.consumer.heartbeat.interval.ms": "How often members of the new protocol shall beat.",
    "group.consumer.max.size": "Members that a group of the new protocol may have.",
    "group.consumer.migration.policy": "Which groups may turn into groups of the other protocol.",
    "group.consumer.session.timeout.ms": "A member of the new protocol is out after this silence.",
    "group.initial.rebalance.delay.ms": "How long a new classic group waits for more members.",
    "group.max.session.timeout.ms": "Longest session time-out that a classic member may ask for.",
    "group.max.size": "Members that a classic group may have.",
    "group.min.session.timeout.ms": "Shortest session time-out that a classic member may ask for.",
    "listener.security.protocol.map": "Which protocol each listener speaks: PLAINTEXT so far.",
    "listeners": "The address the broker listens on; the first that is not a controller's.",
    "log.cleaner.backoff.ms": "How often logs are looked at for compaction.",
    "log.cleaner.enable": "Whether logs are compacted.",
    "log.dir": "The data directory, when log.dirs is not set.",
    "log.dirs": "The data directory: one, not several.",
    "log.flush.offset.checkpoint.interval.ms": "How often recovery points are written.",
    "log.retention.check.interval.ms": "How often old segments are looked for.",
    "log.retention.hours": "Default of retention.ms in hours, behind .minutes and .ms.",
    "log.retention.minutes": "Default of retention.ms in minutes, behind log.retention.ms.",
    "log.roll.hours": "Default of segment.ms in hours, behind log.roll.ms.",
    "log.roll.jitter.hours": "Default of segment.jitter.ms in hours, behind log.roll.jitter.ms.",
    "log.flush.scheduler.interval.ms": "Default of flush.ms, behind log.flush.interval.ms.",
    "max.connections": "Connections open at a time; another one is closed at once.",
    "max.connections.per.ip": "Connections open at a time from one address.",
    "max.request.partition.size.limit": "Partitions in one answer to DescribeTopicPartitions.",
    "max.incremental.fetch.session.cache.slots": "Fetch sessions remembered at a time (KIP-227).",
    "node.id": "The node's id.",
    "num.partitions": "Partitions of a topic created without a number of them.",
    "offset.metadata.max.bytes": "Longest text that may be committed with an offset.",
    "offsets.retention.check.interval.ms": "How often offsets that are too old are looked for.",
    "offsets.retention.minutes": "How long offsets are kept after their group has become empty.",
    "offsets.topic.num.partitions": "Partitions of __consumer_offsets.",
    "offsets.topic.segment.bytes": "Segment size of __consumer_offsets.",
    "producer.id.expiration.ms": "An idempotent producer is forgotten when silent for this long.",
    "share.coordinator.state.topic.num.partitions": "Partitions of __share_group_state.",
    "share.coordinator.state.topic.segment.bytes": "Segment size of __share_group_state.",
    "socket.listen.backlog.size": "Connections that may wait to be accepted.",
    "socket.request.max.bytes": "Largest request; a larger one closes the connection.",
    "transaction.state.log.num.partitions": "Partitions of __transaction_state.",
    "transaction.state.log.segment.bytes": "Segment size of __transaction_state.",
}

_TOPIC_DEFAULTS: dict[str, str] = {
    setting.broker_name: f"Default of {name} for topics. {TOPIC_EFFECTS[name]}"
    for name, setting in TOPIC.items()
    if name in TOPIC_EFFECTS and setting.broker_name is not None
}

BROKER_EFFECTS = {
    **_TOPIC_DEFAULTS,
    **_BROKER_EFFECTS,
    **{own.name: own.doc for own in OWN_SETTINGS},
}
