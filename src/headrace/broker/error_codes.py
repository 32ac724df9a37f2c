"""Which Kafka error code tells a client about which of our errors."""

from kio.schema.errors import ErrorCode

from headrace import errors
from headrace.broker import errors as broker_errors
from headrace.coordinators import errors as group_errors
from headrace.log import errors as log_errors
from headrace.protocol import errors as wire_errors
from headrace.records import errors as record_errors
from headrace.settings import errors as settings_errors

_CODES: dict[type[errors.HeadraceError], ErrorCode] = {
    errors.ConfigError: ErrorCode.invalid_config,
    settings_errors.UnknownSettingError: ErrorCode.invalid_config,
    errors.InvalidConfigError: ErrorCode.invalid_config,
    log_errors.StorageError: ErrorCode.kafka_storage_error,
    log_errors.OffsetOutOfRangeError: ErrorCode.offset_out_of_range,
    log_errors.CorruptBatchError: ErrorCode.corrupt_message,
    log_errors.DirectoryInUseError: ErrorCode.kafka_storage_error,
    log_errors.StorageWriteError: ErrorCode.kafka_storage_error,
    record_errors.RecordError: ErrorCode.invalid_record,
    record_errors.CorruptMessageError: ErrorCode.corrupt_message,
    record_errors.InvalidRecordError: ErrorCode.invalid_record,
    broker_errors.UnexpectedTransactionError: ErrorCode.transactional_id_authorization_failed,
    record_errors.UndecodableRecordsError: ErrorCode.unknown_server_error,
    record_errors.UnsupportedCompressionError: ErrorCode.unsupported_compression_type,
    # Java's producer splits such a batch and tries again.
    record_errors.DecompressedTooLargeError: ErrorCode.message_too_large,
    record_errors.MessageTooLargeError: ErrorCode.message_too_large,
    record_errors.BatchTooLargeError: ErrorCode.record_list_too_large,
    record_errors.InvalidTimestampError: ErrorCode.invalid_timestamp,
    log_errors.OutOfOrderSequenceError: ErrorCode.out_of_order_sequence_number,
    log_errors.InvalidProducerEpochError: ErrorCode.invalid_producer_epoch,
    broker_errors.TopicError: ErrorCode.unknown_topic_or_partition,
    broker_errors.UnknownTopicError: ErrorCode.unknown_topic_or_partition,
    broker_errors.UnknownTopicIdError: ErrorCode.unknown_topic_id,
    broker_errors.TopicExistsError: ErrorCode.topic_already_exists,
    broker_errors.InvalidTopicError: ErrorCode.invalid_topic_exception,
    broker_errors.InvalidPartitionsError: ErrorCode.invalid_partitions,
    broker_errors.InvalidReplicationFactorError: ErrorCode.invalid_replication_factor,
    broker_errors.InvalidReplicaAssignmentError: ErrorCode.invalid_replica_assignment,
    group_errors.GroupError: ErrorCode.unknown_server_error,
    group_errors.CoordinatorNotAvailableError: ErrorCode.coordinator_not_available,
    group_errors.InvalidGroupIdError: ErrorCode.invalid_group_id,
    group_errors.GroupNotFoundError: ErrorCode.group_id_not_found,
    group_errors.NonEmptyGroupError: ErrorCode.non_empty_group,
    group_errors.GroupFullError: ErrorCode.group_max_size_reached,
    group_errors.UnknownMemberError: ErrorCode.unknown_member_id,
    group_errors.MemberIdRequiredError: ErrorCode.member_id_required,
    group_errors.FencedInstanceError: ErrorCode.fenced_instance_id,
    group_errors.UnreleasedInstanceError: ErrorCode.unreleased_instance_id,
    group_errors.IllegalGenerationError: ErrorCode.illegal_generation,
    group_errors.RebalanceInProgressError: ErrorCode.rebalance_in_progress,
    group_errors.InconsistentProtocolError: ErrorCode.inconsistent_group_protocol,
    group_errors.InvalidSessionTimeoutError: ErrorCode.invalid_session_timeout,
    group_errors.GroupRequestError: ErrorCode.invalid_request,
    group_errors.FencedMemberEpochError: ErrorCode.fenced_member_epoch,
    group_errors.StaleMemberEpochError: ErrorCode.stale_member_epoch,
    group_errors.UnsupportedAssignorError: ErrorCode.unsupported_assignor,
    group_errors.InvalidRegexError: ErrorCode.invalid_regular_expression,
    group_errors.GroupVersionError: ErrorCode.unsupported_version,
    group_errors.OffsetMetadataTooLargeError: ErrorCode.offset_metadata_too_large,
    group_errors.GroupSubscribedError: ErrorCode.group_subscribed_to_topic,
    errors.RequestError: ErrorCode.invalid_request,
    wire_errors.WireError: ErrorCode.invalid_request,
    wire_errors.TooManyElementsError: ErrorCode.invalid_request,
}


def code_for(error: errors.HeadraceError | None) -> ErrorCode:
    """Return the code of the error's class, or of its nearest ancestor; of no error, none."""
    if error is None:
        return ErrorCode.none
    for kind in type(error).__mro__:
        code = _CODES.get(kind)
        if code is not None:
            return code
    return ErrorCode.unknown_server_error
