"""Errors of everything but groups. Import them from `headrace.errors`, where the tree is drawn."""

from collections.abc import Sequence
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
    """The batch's content breaks a rule; `record_errors` has (index, why) if not of all records."""

    def __init__(self, reason: str, record_errors: Sequence[tuple[int, str]] = ()) -> None:
        super().__init__(reason)
        self.record_errors = record_errors


class UnexpectedTransactionError(RecordError):
    """A transactional batch that belongs to no transaction this broker knows."""


class UndecodableRecordsError(RecordError):
    """The codec of the batch is unknown or its payload does not decompress."""


class DecompressedTooLargeError(UndecodableRecordsError):
    """Compressed records would take more memory than they may."""

    def __init__(self, codec: str, limit_bytes: int) -> None:
        super().__init__(f"{codec} data is over {limit_bytes} bytes decompressed")
        self.codec, self.limit_bytes = codec, limit_bytes


class UnsupportedCompressionError(RecordError):
    """The codec of the batch is not for the version of the request that brought it."""


class MessageTooLargeError(RecordError):
    """The batch is larger than `max.message.bytes`."""

    def __init__(self, size: int, limit: int, setting: str = "max.message.bytes") -> None:
        super().__init__(f"batch of {size} bytes is over {setting}={limit}")
        self.size, self.limit = size, limit


class BatchTooLargeError(MessageTooLargeError):
    """The batch is larger than a segment may be."""


class InvalidTimestampError(InvalidRecordError):
    """Timestamps are too far from the clock for the topic, or not the client's to set."""


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


class MirrorIdentityError(MirrorRefusedError):
    """A topic or a cluster is not the one that was copied, though it has the same name."""


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


class WireError(HeadraceError):
    """Bytes that break the wire format; the connection is closed."""


class TooManyElementsError(WireError):
    """A request that names more than it can mean; refused before it is read to its end."""

    def __init__(self, count: int, limit: int) -> None:
        super().__init__(f"{count} topics and partitions in one request; {limit} are allowed")
        self.count, self.limit = count, limit
