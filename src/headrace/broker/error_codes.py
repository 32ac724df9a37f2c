"""Which Kafka error code tells a client about which of our errors."""

from kio.schema.errors import ErrorCode

from headrace import errors

_CODES: dict[type[errors.HeadraceError], ErrorCode] = {
    errors.ConfigError: ErrorCode.invalid_config,
    errors.UnknownSettingError: ErrorCode.invalid_config,
    errors.InvalidConfigError: ErrorCode.invalid_config,
    errors.StorageError: ErrorCode.kafka_storage_error,
    errors.OffsetOutOfRangeError: ErrorCode.offset_out_of_range,
    errors.CorruptBatchError: ErrorCode.corrupt_message,
    errors.DirectoryInUseError: ErrorCode.kafka_storage_error,
    errors.StorageWriteError: ErrorCode.kafka_storage_error,
    errors.RecordError: ErrorCode.invalid_record,
    errors.CorruptMessageError: ErrorCode.corrupt_message,
    errors.InvalidRecordError: ErrorCode.invalid_record,
    errors.UnexpectedTransactionError: ErrorCode.transactional_id_authorization_failed,
    errors.UndecodableRecordsError: ErrorCode.unknown_server_error,
    errors.UnsupportedCompressionError: ErrorCode.unsupported_compression_type,
    # Java's producer splits such a batch and tries again.
    errors.DecompressedTooLargeError: ErrorCode.message_too_large,
    errors.MessageTooLargeError: ErrorCode.message_too_large,
    errors.BatchTooLargeError: ErrorCode.record_list_too_large,
    errors.InvalidTimestampError: ErrorCode.invalid_timestamp,
    errors.OutOfOrderSequenceError: ErrorCode.out_of_order_sequence_number,
    errors.InvalidProducerEpochError: ErrorCode.invalid_producer_epoch,
    errors.TopicError: ErrorCode.unknown_topic_or_partition,
    errors.UnknownTopicError: ErrorCode.unknown_topic_or_partition,
    errors.UnknownTopicIdError: ErrorCode.unknown_topic_id,
    errors.TopicExistsError: ErrorCode.topic_already_exists,
    errors.InvalidTopicError: ErrorCode.invalid_topic_exception,
    errors.InvalidPartitionsError: ErrorCode.invalid_partitions,
    errors.InvalidReplicationFactorError: ErrorCode.invalid_replication_factor,
    errors.InvalidReplicaAssignmentError: ErrorCode.invalid_replica_assignment,
    errors.GroupError: ErrorCode.unknown_server_error,
    errors.CoordinatorNotAvailableError: ErrorCode.coordinator_not_available,
    errors.CoordinatorLoadingError: ErrorCode.coordinator_load_in_progress,
    errors.InvalidGroupIdError: ErrorCode.invalid_group_id,
    errors.GroupNotFoundError: ErrorCode.group_id_not_found,
    errors.NonEmptyGroupError: ErrorCode.non_empty_group,
    errors.GroupFullError: ErrorCode.group_max_size_reached,
    errors.UnknownMemberError: ErrorCode.unknown_member_id,
    errors.MemberIdRequiredError: ErrorCode.member_id_required,
    errors.FencedInstanceError: ErrorCode.fenced_instance_id,
    errors.UnreleasedInstanceError: ErrorCode.unreleased_instance_id,
    errors.IllegalGenerationError: ErrorCode.illegal_generation,
    errors.RebalanceInProgressError: ErrorCode.rebalance_in_progress,
    errors.InconsistentProtocolError: ErrorCode.inconsistent_group_protocol,
    errors.InvalidSessionTimeoutError: ErrorCode.invalid_session_timeout,
    errors.GroupRequestError: ErrorCode.invalid_request,
    errors.FencedMemberEpochError: ErrorCode.fenced_member_epoch,
    errors.StaleMemberEpochError: ErrorCode.stale_member_epoch,
    errors.UnsupportedAssignorError: ErrorCode.unsupported_assignor,
    errors.InvalidRegexError: ErrorCode.invalid_regular_expression,
    errors.GroupVersionError: ErrorCode.unsupported_version,
    errors.OffsetMetadataTooLargeError: ErrorCode.offset_metadata_too_large,
    errors.GroupSubscribedError: ErrorCode.group_subscribed_to_topic,
    errors.RequestError: ErrorCode.invalid_request,
    errors.WireError: ErrorCode.invalid_request,
    errors.TooManyElementsError: ErrorCode.invalid_request,
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
