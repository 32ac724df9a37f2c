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
    errors.MessageTooLargeError: ErrorCode.message_too_large,
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
    errors.RequestError: ErrorCode.invalid_request,
    errors.WireError: ErrorCode.invalid_request,
}


def code_for(error: errors.HeadraceError) -> ErrorCode:
    """Return the code of the error's class, or of its nearest ancestor that has one."""
    for kind in type(error).__mro__:
        code = _CODES.get(kind)
        if code is not None:
            return code
    return ErrorCode.unknown_server_error
