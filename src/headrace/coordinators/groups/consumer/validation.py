"""What a ConsumerGroupHeartbeat may say, before anyone looks at the group. Words are Kafka's."""

from headrace.coordinators.errors import GroupRequestError, UnsupportedAssignorError
from headrace.coordinators.groups.limits import ConsumerLimits
from headrace.coordinators.groups.messages import ConsumerHeartbeatRequest

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
STATIC_LEAVE_EPOCH = -2


def validate_heartbeat(request: ConsumerHeartbeatRequest, limits: ConsumerLimits) -> None:
    """Raise when the request cannot be right, whatever the group's state."""
    epoch = request.member_epoch
    # Members of version 0 that join or go for a while may leave their id to the broker.
    if request.makes_its_id or epoch > 0 or epoch == LEAVE_EPOCH:
        _refuse_blank(request.member_id, "MemberId")
    _refuse_blank(request.group_id, "GroupId")
    _refuse_blank(request.instance_id, "InstanceId")
    _refuse_blank(request.rack_id, "RackId")

    if epoch == JOIN_EPOCH:
        _validate_join(request)
    elif epoch == STATIC_LEAVE_EPOCH and request.instance_id is None:
        raise GroupRequestError("InstanceId can't be null.")
    elif epoch < STATIC_LEAVE_EPOCH:
        raise GroupRequestError("MemberEpoch is invalid.")

    if request.server_assignor is not None and request.server_assignor not in limits.assignors:
        raise UnsupportedAssignorError(
            f"ServerAssignor {request.server_assignor} is not supported. "
            f"Supported assignors: {', '.join(limits.assignors)}."
        )


def _validate_join(request: ConsumerHeartbeatRequest) -> None:
    if request.rebalance_timeout_ms == -1:
        raise GroupRequestError("RebalanceTimeoutMs must be provided in first request.")
    if request.owned is None or request.owned:
        raise GroupRequestError("TopicPartitions must be empty when (re-)joining.")
    if request.topic_names is None and request.topic_regex is None:
        raise GroupRequestError(
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null "
            "when (re-)joining."
        )


def _refuse_blank(value: str | None, field: str) -> None:
    if value is not None and not value.strip():
        raise GroupRequestError(f"{field} can't be empty.")
