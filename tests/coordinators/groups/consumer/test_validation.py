import pytest

from headrace.coordinators.errors import GroupError, GroupRequestError, UnsupportedAssignorError
from headrace.coordinators.groups.consumer.validation import validate_heartbeat
from headrace.coordinators.groups.limits import ConsumerLimits
from headrace.coordinators.groups.messages import ConsumerHeartbeatRequest

LIMITS = ConsumerLimits()
JOIN = ConsumerHeartbeatRequest(
    "group", "member", 0, None, None, 60_000, ("topic",), None, None, {}, "client", "/host"
)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"group_id": " "}, "GroupId can't be empty."),
        ({"member_id": ""}, "MemberId can't be empty."),
        ({"member_id": "", "member_epoch": 1, "makes_its_id": False}, "MemberId can't be empty."),
        ({"member_id": "", "member_epoch": -1, "makes_its_id": False}, "MemberId can't be empty."),
        ({"instance_id": ""}, "InstanceId can't be empty."),
        ({"rack_id": ""}, "RackId can't be empty."),
        ({"rebalance_timeout_ms": -1}, "RebalanceTimeoutMs must be provided in first request."),
        ({"owned": None}, "TopicPartitions must be empty when (re-)joining."),
        (
            {"topic_names": None},
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null "
            "when (re-)joining.",
        ),
        ({"member_epoch": -2}, "InstanceId can't be null."),
        ({"member_epoch": -3}, "MemberEpoch is invalid."),
    ],
)
def test_a_wrong_heartbeat_is_refused_in_kafkas_words(
    changes: dict[str, object], words: str
) -> None:
    with pytest.raises(GroupRequestError) as refusal:
        validate_heartbeat(JOIN._replace(**changes), LIMITS)  # type: ignore[arg-type]

    assert str(refusal.value) == words


def test_an_assignor_the_broker_does_not_have_is_refused() -> None:
    with pytest.raises(UnsupportedAssignorError) as refusal:
        validate_heartbeat(JOIN._replace(server_assignor="sticky"), LIMITS)

    assert str(refusal.value) == (
        "ServerAssignor sticky is not supported. Supported assignors: uniform, range."
    )


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"topic_names": ()},
        {"topic_names": None, "topic_regex": "a.*"},
        {"member_id": "", "makes_its_id": False},
        {"member_epoch": -2, "instance_id": "one"},
        {"member_epoch": -1, "owned": None, "topic_names": None},
        {"member_epoch": 7, "owned": None, "topic_names": None, "rebalance_timeout_ms": -1},
        {"server_assignor": "range"},
    ],
)
def test_a_right_heartbeat_is_not(changes: dict[str, object]) -> None:
    try:
        validate_heartbeat(JOIN._replace(**changes), LIMITS)  # type: ignore[arg-type]
    except GroupError as error:
        pytest.fail(f"refused: {error}")
