"""The check that a client and this broker speak of the same leader (KIP-320)."""

from kio.schema.errors import ErrorCode

from headrace.log.partition_log import PartitionLog

NO_EPOCH = -1


def check_leader_epoch(log: PartitionLog, current_leader_epoch: int) -> ErrorCode:
    """Compare the epoch a client takes for current with the log's; -1 asks for no check."""
    if current_leader_epoch == NO_EPOCH or current_leader_epoch == log.leader_epoch:
        return ErrorCode.none
    if current_leader_epoch < log.leader_epoch:
        return ErrorCode.fenced_leader_epoch
    return ErrorCode.unknown_leader_epoch
