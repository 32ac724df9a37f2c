"""Everything headrace raises, as one tree; facts are attributes, the message is built from them.

HeadraceError
├── ConfigError              the operator asked for something impossible
│   ├── UnknownSettingError  no setting of Kafka's has this name
│   └── InvalidConfigError   a known setting with a value Kafka refuses, in Kafka's words
├── StorageError             the disk, or what lies on it
│   └── OffsetOutOfRangeError, CorruptBatchError, DirectoryInUseError, StorageWriteError
├── RecordError              what a producer sent cannot be appended
│   ├── CorruptMessageError, InvalidRecordError, InvalidTimestampError, MessageTooLargeError
│   ├── BatchTooLargeError, UndecodableRecordsError, DecompressedTooLargeError
│   ├── UnsupportedCompressionError
│   ├── UnexpectedTransactionError
│   └── OutOfOrderSequenceError, InvalidProducerEpochError
├── TopicError               a topic or partition that is not, or may not be
│   ├── UnknownTopicError, UnknownTopicIdError, TopicExistsError, InvalidTopicError
│   └── InvalidPartitionsError, InvalidReplicationFactorError, InvalidReplicaAssignmentError
├── GroupError               what a group's coordinator refuses; `str` is what the client is told
│   ├── CoordinatorNotAvailableError, CoordinatorLoadingError, InvalidGroupIdError
│   ├── GroupNotFoundError, NonEmptyGroupError, GroupFullError
│   ├── UnknownMemberError, MemberIdRequiredError, FencedInstanceError, UnreleasedInstanceError
│   ├── IllegalGenerationError, RebalanceInProgressError, InconsistentProtocolError
│   ├── InvalidSessionTimeoutError, GroupRequestError, FencedMemberEpochError
│   ├── StaleMemberEpochError, UnsupportedAssignorError
│   └── InvalidRegexError, GroupVersionError, OffsetMetadataTooLargeError, GroupSubscribedError
├── RequestError             a well-formed request for something that cannot be done
├── EngineError              Apache Kafka on this machine cannot be fetched, started or asked
│   ├── JarError, JavaNotFoundError, NodeError
│   ├── ClusterError         a cluster that is not there, exists already or does not get ready
│   └── DrillError           a fail-over drill that cannot be run to its end
├── MirrorError              a mirror that cannot go on, or whose copy differs
│   └── MirrorRefusedError   one that would go round in circles, or into a topic that is not its own
│       └── MirrorIdentityError  another topic or cluster has the name of the one that was copied
├── PipelineError            a pipeline that cannot be found, started or gone on with
│   ├── PipelineDefinitionError  its module, its YAML or its options
│   ├── SparkError           Spark cannot be set up, started or asked; `log_file` has its traces
│   ├── SourceError          no broker, no topic, positions that are gone
│   ├── SinkError            a lake, table or topic that does not take what it is given
│   └── RunError             a checkpoint in use, a run that is not there
└── WireError                bytes that break the wire format; the connection is closed
    └── TooManyElementsError more topics and partitions than a request can mean
"""

from headrace.errors.base import (
    BatchTooLargeError,
    ClusterError,
    ConfigError,
    CorruptBatchError,
    CorruptMessageError,
    DecompressedTooLargeError,
    DirectoryInUseError,
    DrillError,
    EngineError,
    HeadraceError,
    InvalidConfigError,
    InvalidPartitionsError,
    InvalidProducerEpochError,
    InvalidRecordError,
    InvalidReplicaAssignmentError,
    InvalidReplicationFactorError,
    InvalidTimestampError,
    InvalidTopicError,
    JarError,
    JavaNotFoundError,
    MessageTooLargeError,
    MirrorError,
    MirrorIdentityError,
    MirrorRefusedError,
    NodeError,
    OffsetOutOfRangeError,
    OutOfOrderSequenceError,
    PipelineDefinitionError,
    PipelineError,
    RecordError,
    RequestError,
    RunError,
    SinkError,
    SourceError,
    SparkError,
    StorageError,
    StorageWriteError,
    TooManyElementsError,
    TopicError,
    TopicExistsError,
    UndecodableRecordsError,
    UnexpectedTransactionError,
    UnknownSettingError,
    UnknownTopicError,
    UnknownTopicIdError,
    UnsupportedCompressionError,
    WireError,
)
from headrace.errors.groups import (
    CoordinatorLoadingError,
    CoordinatorNotAvailableError,
    FencedInstanceError,
    FencedMemberEpochError,
    GroupError,
    GroupFullError,
    GroupNotFoundError,
    GroupRequestError,
    GroupSubscribedError,
    GroupVersionError,
    IllegalGenerationError,
    InconsistentProtocolError,
    InvalidGroupIdError,
    InvalidRegexError,
    InvalidSessionTimeoutError,
    MemberIdRequiredError,
    NonEmptyGroupError,
    OffsetMetadataTooLargeError,
    RebalanceInProgressError,
    StaleMemberEpochError,
    UnknownMemberError,
    UnreleasedInstanceError,
    UnsupportedAssignorError,
)

__all__ = [
    "BatchTooLargeError",
    "ClusterError",
    "ConfigError",
    "CoordinatorLoadingError",
    "CoordinatorNotAvailableError",
    "CorruptBatchError",
    "CorruptMessageError",
    "DecompressedTooLargeError",
    "DirectoryInUseError",
    "DrillError",
    "EngineError",
    "FencedInstanceError",
    "FencedMemberEpochError",
    "GroupError",
    "GroupFullError",
    "GroupNotFoundError",
    "GroupRequestError",
    "GroupSubscribedError",
    "GroupVersionError",
    "HeadraceError",
    "IllegalGenerationError",
    "InconsistentProtocolError",
    "InvalidConfigError",
    "InvalidGroupIdError",
    "InvalidPartitionsError",
    "InvalidProducerEpochError",
    "InvalidRecordError",
    "InvalidRegexError",
    "InvalidReplicaAssignmentError",
    "InvalidReplicationFactorError",
    "InvalidSessionTimeoutError",
    "InvalidTimestampError",
    "InvalidTopicError",
    "JarError",
    "JavaNotFoundError",
    "MemberIdRequiredError",
    "MessageTooLargeError",
    "MirrorError",
    "MirrorIdentityError",
    "MirrorRefusedError",
    "NodeError",
    "NonEmptyGroupError",
    "OffsetMetadataTooLargeError",
    "OffsetOutOfRangeError",
    "OutOfOrderSequenceError",
    "PipelineDefinitionError",
    "PipelineError",
    "RebalanceInProgressError",
    "RecordError",
    "RequestError",
    "RunError",
    "SinkError",
    "SourceError",
    "SparkError",
    "StaleMemberEpochError",
    "StorageError",
    "StorageWriteError",
    "TooManyElementsError",
    "TopicError",
    "TopicExistsError",
    "UndecodableRecordsError",
    "UnexpectedTransactionError",
    "UnknownMemberError",
    "UnknownSettingError",
    "UnknownTopicError",
    "UnknownTopicIdError",
    "UnreleasedInstanceError",
    "UnsupportedAssignorError",
    "UnsupportedCompressionError",
    "WireError",
]
