"""Everything headrace raises, as one tree; facts are attributes, the message is built from them.

HeadraceError
├── ConfigError              the operator asked for something impossible
│   ├── UnknownSettingError  no setting of Kafka's has this name
│   └── InvalidConfigError   a known setting with a value Kafka refuses, in Kafka's words
├── StorageError             the disk, or what lies on it
│   ├── OffsetOutOfRangeError
│   ├── CorruptBatchError
│   ├── DirectoryInUseError
│   └── StorageWriteError
├── RecordError              what a producer sent cannot be appended
│   ├── CorruptMessageError, InvalidRecordError, MessageTooLargeError
│   ├── UnexpectedTransactionError
│   ├── InvalidTimestampError, UndecodableRecordsError
│   └── OutOfOrderSequenceError, InvalidProducerEpochError
├── TopicError               a topic or partition that is not, or may not be
│   ├── UnknownTopicError, UnknownTopicIdError, TopicExistsError, InvalidTopicError
│   └── InvalidPartitionsError, InvalidReplicationFactorError, InvalidReplicaAssignmentError
├── GroupError               what a group's coordinator refuses; `str` is what the client is told
│   ├── CoordinatorNotAvailableError, CoordinatorLoadingError
│   ├── InvalidGroupIdError, GroupNotFoundError, NonEmptyGroupError, GroupFullError
│   ├── UnknownMemberError, MemberIdRequiredError, FencedInstanceError, UnreleasedInstanceError
│   ├── IllegalGenerationError, RebalanceInProgressError, InconsistentProtocolError
│   ├── InvalidSessionTimeoutError, GroupRequestError
│   ├── FencedMemberEpochError, StaleMemberEpochError, UnsupportedAssignorError
│   ├── InvalidRegexError, GroupVersionError
│   └── OffsetMetadataTooLargeError, GroupSubscribedError
├── RequestError             a well-formed request for something that cannot be done
├── EngineError              Apache Kafka on this machine cannot be fetched, started or asked
│   ├── JarError, JavaNotFoundError, NodeError
│   ├── ClusterError         a cluster that is not there, exists already or does not get ready
│   └── DrillError           a fail-over drill that cannot be run to its end
├── MirrorError              a mirror that cannot go on, or whose copy differs
│   └── MirrorRefusedError   one that would go round in circles, or into a topic that is not its own
├── PipelineError            a pipeline that cannot be found, started or gone on with
│   ├── PipelineDefinitionError  its module, its YAML or its options
│   ├── SparkError           Spark cannot be set up, started or asked; `log_file` has its traces
│   ├── SourceError          no broker, no topic, positions that are gone
│   ├── SinkError            a lake, table or topic that does not take what it is given
│   └── RunError             a checkpoint in use, a run that is not there
├── BenchError               a measurement that cannot be taken or is not valid
└── WireError                bytes that break the wire format; the connection is closed
"""

from pathlib import Path
from uuid import UUID


class HeadraceError(Exception):
    """Base of all errors this package raises on purpose."""


class ConfigError(HeadraceError):
    """A setting has a value that cannot work."""

    def __init__(self, name: str, value: object, wanted: str) -> None:
        super().__init__(f"{name}={value}: {wanted}")
        self.name, self.value, self.wanted = name, value, wanted


class UnknownSettingError(ConfigError):
    """No setting has this name. `source` says where it stands, when that was a file or the like."""

    def __init__(
        self,
        name: str,
        kind: str = "broker",
        *,
        source: str | None = None,
        suggestion: str | None = None,
    ) -> None:
        message = f"Unknown {kind} config name: {name}"
        if suggestion:
            message += f"; did you mean {suggestion}?"
        HeadraceError.__init__(self, f"{source}: {message}" if source else message)
        self.name, self.value, self.wanted, self.kind = name, None, "a known name", kind
        self.source, self.suggestion = source, suggestion


class InvalidConfigError(ConfigError):
    """A known setting has a value that Kafka refuses; `wanted` is Kafka's own sentence."""

    def __init__(self, name: str, value: object, wanted: str, *, source: str | None = None) -> None:
        HeadraceError.__init__(self, f"{source}: {wanted}" if source else wanted)
        self.name, self.value, self.wanted, self.source = name, value, wanted, source


class StorageError(HeadraceError):
    """The disk, or what lies on it."""


class OffsetOutOfRangeError(StorageError):
    """The offset lies outside the log."""

    def __init__(self, offset: int, start: int, end: int) -> None:
        super().__init__(f"offset {offset} is outside [{start}, {end})")
        self.offset, self.start, self.end = offset, start, end


class CorruptBatchError(StorageError):
    """A batch on disk is damaged."""

    def __init__(self, path: Path, position: int, reason: str) -> None:
        super().__init__(f"{path} is damaged at byte {position}: {reason}")
        self.path, self.position, self.reason = path, position, reason


class DirectoryInUseError(StorageError):
    """Another broker has the data directory open."""

    def __init__(self, path: Path, owner: str) -> None:
        super().__init__(
            f"data directory {path} is in use by {owner}; "
            "stop that broker or choose another --data-dir"
        )
        self.path, self.owner = path, owner


class StorageWriteError(StorageError):
    """The operating system refused a write; nothing of it was kept."""

    def __init__(self, path: Path, error: OSError) -> None:
        super().__init__(f"cannot write {path}: {error.strerror or error}")
        self.path, self.error = path, error


class RecordError(HeadraceError):
    """What a producer sent cannot be appended."""


class CorruptMessageError(RecordError):
    """The batch's bytes do not match its checksum or its size."""


class InvalidRecordError(RecordError):
    """The batch is whole, but its content breaks a rule; which record, if one is to blame."""

    def __init__(self, reason: str, record_index: int = -1) -> None:
        super().__init__(reason)
        self.record_index = record_index


class UnexpectedTransactionError(RecordError):
    """A transactional batch that belongs to no transaction this broker knows."""


class UndecodableRecordsError(RecordError):
    """The codec of the batch is unknown or its payload does not decompress."""


class MessageTooLargeError(RecordError):
    """The batch is larger than `max.message.bytes`."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(f"batch of {size} bytes is over max.message.bytes={limit}")
        self.size, self.limit = size, limit


class InvalidTimestampError(RecordError):
    """The timestamp lies further from the clock than the topic allows."""

    def __init__(self, timestamp: int, earliest: int, latest: int) -> None:
        super().__init__(f"timestamp {timestamp} is outside [{earliest}, {latest}]")
        self.timestamp, self.earliest, self.latest = timestamp, earliest, latest
        self.record_index = -1


class OutOfOrderSequenceError(RecordError):
    """A producer's sequence number leaves a gap."""

    def __init__(self, producer_id: int, sequence: int, expected: int) -> None:
        super().__init__(f"producer {producer_id} sent sequence {sequence}, expected {expected}")
        self.producer_id, self.sequence, self.expected = producer_id, sequence, expected


class InvalidProducerEpochError(RecordError):
    """A producer with an older epoch than the one known was fenced."""

    def __init__(self, producer_id: int, epoch: int, current: int) -> None:
        super().__init__(f"producer {producer_id} has epoch {epoch}, current is {current}")
        self.producer_id, self.epoch, self.current = producer_id, epoch, current


class TopicError(HeadraceError):
    """A topic or partition that is not, or may not be."""


class UnknownTopicError(TopicError):
    """No such topic or partition."""

    def __init__(self, topic: str, partition: int | None = None) -> None:
        what = topic if partition is None else f"{topic}-{partition}"
        super().__init__(f"unknown topic or partition {what}")
        self.topic, self.partition = topic, partition


class UnknownTopicIdError(TopicError):
    """No topic has this id."""

    def __init__(self, topic_id: UUID) -> None:
        super().__init__(f"unknown topic id {topic_id}")
        self.topic_id = topic_id


class TopicExistsError(TopicError):
    """The name is taken."""

    def __init__(self, topic: str) -> None:
        super().__init__(f"Topic '{topic}' already exists.")
        self.topic = topic


class InvalidTopicError(TopicError):
    """The name cannot be a topic's."""


class InvalidPartitionsError(TopicError):
    """The number of partitions is impossible."""


class InvalidReplicationFactorError(TopicError):
    """One node cannot hold this many replicas."""


class InvalidReplicaAssignmentError(TopicError):
    """The manual assignment names brokers or partitions that are not there."""


class GroupError(HeadraceError):
    """What a group's coordinator refuses."""


class CoordinatorNotAvailableError(GroupError):
    """The group's state cannot be written now; try again."""


class CoordinatorLoadingError(GroupError):
    """The group's state is being read from disk; try again."""


class InvalidGroupIdError(GroupError):
    """The group's name cannot be one."""


class GroupNotFoundError(GroupError):
    """There is no group of this name, or none of the kind asked for."""


class NonEmptyGroupError(GroupError):
    """The group has members."""


class GroupFullError(GroupError):
    """The group has as many members as it may."""


class UnknownMemberError(GroupError):
    """The group has no member of this id."""


class MemberIdRequiredError(GroupError):
    """Join again with the id that comes with this (KIP-394)."""


class FencedInstanceError(GroupError):
    """Another member has taken over this group.instance.id."""


class UnreleasedInstanceError(GroupError):
    """A member still has this group.instance.id (KIP-848)."""


class IllegalGenerationError(GroupError):
    """The generation is not the group's."""


class RebalanceInProgressError(GroupError):
    """Join again: the group is between two generations."""


class InconsistentProtocolError(GroupError):
    """The member's protocols have none in common with the group's."""


class InvalidSessionTimeoutError(GroupError):
    """The session time-out is outside the broker's bounds."""


class GroupRequestError(GroupError):
    """A field of the request cannot be right."""


class FencedMemberEpochError(GroupError):
    """The member's epoch is over; join again with epoch 0 (KIP-848)."""


class StaleMemberEpochError(GroupError):
    """The member's epoch is behind; the next heartbeat brings the new one (KIP-848)."""


class UnsupportedAssignorError(GroupError):
    """No assignor of the broker has this name."""


class InvalidRegexError(GroupError):
    """The regular expression of a subscription cannot be read."""


class GroupVersionError(GroupError):
    """The request's version cannot speak of what groups of the new protocol have (KIP-848)."""


class OffsetMetadataTooLargeError(GroupError):
    """The text with a committed offset is longer than offset.metadata.max.bytes."""


class GroupSubscribedError(GroupError):
    """Offsets of a topic cannot be deleted while the group reads it."""


class RequestError(HeadraceError):
    """A well-formed request for something that cannot be done."""


class EngineError(HeadraceError):
    """Apache Kafka on this machine cannot be fetched, started or asked."""


class JarError(EngineError):
    """A jar is not there, cannot be had, or is not the pinned one."""


class JavaNotFoundError(EngineError):
    """No Java on this machine is new enough."""

    def __init__(self, minimum: int, too_old: list[str]) -> None:
        found = f" (found only {', '.join(too_old)})" if too_old else ""
        super().__init__(
            f"Java {minimum} or newer is needed and was not found{found}; install it with "
            f"'apt-get install openjdk-{minimum}-jre-headless' (Debian, Ubuntu) or "
            f"'dnf install java-{minimum}-openjdk-headless' (Fedora, RHEL), or set JAVA_HOME"
        )
        self.minimum, self.too_old = minimum, too_old


class NodeError(EngineError):
    """A Kafka node did not start, or stopped when it should not."""


class ClusterError(EngineError):
    """A cluster on this machine is not there, exists already, or does not get ready."""


class DrillError(EngineError):
    """A fail-over drill cannot be run to its end; what it would prove stays unproven."""


class MirrorError(HeadraceError):
    """A mirror cannot go on, or its copy differs; the message names the fix."""


class MirrorRefusedError(MirrorError):
    """It would go in circles, or into a topic that is not its own; nothing is written."""


class PipelineError(HeadraceError):
    """A pipeline cannot be found, started or gone on with; the message names the fix."""


class PipelineDefinitionError(PipelineError):
    """A pipeline's module, YAML file or options make no sense."""


class SparkError(PipelineError):
    """Spark cannot be set up, started or asked. `log_file` holds what Java said."""

    def __init__(self, message: str, log_file: Path | None = None) -> None:
        super().__init__(f"{message} (details in {log_file})" if log_file else message)
        self.log_file = log_file


class SourceError(PipelineError):
    """There is no broker, no topic, or the wanted positions are gone."""


class SinkError(PipelineError):
    """A lake, table or topic does not take what it is given."""


class RunError(PipelineError):
    """A checkpoint is in use, or there is no such run."""


class BenchError(HeadraceError):
    """A measurement cannot be taken, or what was measured is not valid."""


class WireError(HeadraceError):
    """Bytes that break the wire format; the connection is closed."""
