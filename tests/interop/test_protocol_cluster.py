"""What a cluster of one node says of leaders, replicas and its quorum: the same on both engines."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.interop.wire import DESCRIBE_LOG_DIRS, METADATA, Engine, WireClient

ALTER_REPLICA_LOG_DIRS, ELECT_LEADERS, DESCRIBE_QUORUM = 34, 43, 55
ALTER_PARTITION_REASSIGNMENTS, LIST_PARTITION_REASSIGNMENTS = 45, 46

NONE, UNKNOWN_TOPIC, INVALID_REPLICA_ASSIGNMENT, INVALID_REQUEST = 0, 3, 39, 42
LOG_DIR_NOT_FOUND, ELECTION_NOT_NEEDED, NO_REASSIGNMENT_IN_PROGRESS = 57, 84, 85

PREFERRED, UNCLEAN = 0, 1
HAS_ITS_LEADER = "Leader election not needed for topic partition."
METADATA_LOG = ("__cluster_metadata", [0])
TIMEOUT_MS = 10_000


@pytest.fixture
def node_id(wire: WireClient) -> int:
    """The id of the only broker."""
    (broker,) = wire.call(METADATA, 1, topics=[]).brokers
    return int(broker.node_id)


@pytest.fixture
def two(new_topic: Callable[..., str]) -> str:
    """A topic of two partitions."""
    return new_topic(partitions=2)


# --- ElectLeaders


def elect(
    wire: WireClient,
    topics: dict[str, list[int]] | None,
    *,
    election_type: int = PREFERRED,
    version: int = 2,
) -> Any:
    asked = topics and [
        {"topic": name, "partitions": partitions} for name, partitions in topics.items()
    ]
    kind = {} if version == 0 else {"election_type": election_type}
    return wire.call(ELECT_LEADERS, version, topic_partitions=asked, timeout=TIMEOUT_MS, **kind)


def elections(answer: Any) -> dict[str, list[tuple[int, int, str | None]]]:
    return {
        topic.topic: [
            (one.partition_id, int(one.error_code), one.error_message)
            for one in topic.partition_result
        ]
        for topic in answer.replica_election_results
    }


@pytest.mark.parametrize("version", [0, 1, 2])
def test_every_partition_has_its_leader_already(wire: WireClient, two: str, version: int) -> None:
    answer = elect(wire, {two: [1, 0]}, version=version)

    told = [(index, ELECTION_NOT_NEEDED, HAS_ITS_LEADER) for index in (1, 0)]
    assert elections(answer) == {two: told}
    if version >= 1:
        assert answer.error_code == NONE


@pytest.mark.parametrize("version", [0, 1, 2])
def test_of_all_partitions_those_with_their_leader_are_left_out(
    wire: WireClient, new_topic: Callable[..., str], version: int
) -> None:
    one, another = new_topic(), new_topic(partitions=2)

    told = elections(elect(wire, None, version=version))

    assert (told[one], told[another]) == ([], [])


@pytest.mark.parametrize("election_type", [PREFERRED, UNCLEAN])
def test_no_election_is_held_for_what_is_not_there(
    wire: WireClient, two: str, election_type: int
) -> None:
    answer = elect(wire, {"nope": [0], two: [7, 0, -1]}, election_type=election_type)

    assert answer.error_code == NONE
    assert elections(answer) == {
        "nope": [(0, UNKNOWN_TOPIC, "No such topic as nope")],
        two: [
            (7, UNKNOWN_TOPIC, f"No such partition as {two}-7"),
            (0, ELECTION_NOT_NEEDED, HAS_ITS_LEADER),
            (-1, UNKNOWN_TOPIC, f"No such partition as {two}--1"),
        ],
    }


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("election_type", [2, -1])
def test_an_unknown_kind_of_election_is_refused(
    wire: WireClient, topic: str, election_type: int, version: int
) -> None:
    answer = elect(wire, {topic: [0], "nope": [3]}, election_type=election_type, version=version)
    of_all = elect(wire, None, election_type=election_type, version=version)

    words = f"Unknown election type {election_type}"
    assert (answer.error_code, of_all.error_code) == (INVALID_REQUEST, INVALID_REQUEST)
    assert elections(answer) == {
        topic: [(0, INVALID_REQUEST, words)],
        "nope": [(3, INVALID_REQUEST, words)],
    }
    assert elections(of_all) == {}


# --- AlterReplicaLogDirs


@pytest.fixture
def log_dir(wire: WireClient) -> str:
    """The only log directory, as DescribeLogDirs tells it."""
    (told,) = wire.call(DESCRIBE_LOG_DIRS, 4, topics=[]).results
    return str(told.log_dir)


def move(
    wire: WireClient, *wishes: tuple[str, dict[str, list[int]]], version: int = 2
) -> dict[tuple[str, int], int]:
    """Ask for partitions to be moved, and return the error code of each."""
    dirs = [
        {
            "path": path,
            "topics": [
                {"name": name, "partitions": partitions} for name, partitions in topics.items()
            ],
        }
        for path, topics in wishes
    ]
    answer = wire.call(ALTER_REPLICA_LOG_DIRS, version, dirs=dirs)
    told = [
        ((topic.topic_name, one.partition_index), int(one.error_code))
        for topic in answer.results
        for one in topic.partitions
    ]
    assert len(told) == len(dict(told)), "a partition was answered twice"
    return dict(told)


@pytest.mark.parametrize("version", [1, 2])
def test_a_partition_may_stay_in_its_directory(
    wire: WireClient, two: str, log_dir: str, version: int
) -> None:
    told = move(wire, (log_dir, {two: [0, 1]}), version=version)

    assert told == {(two, 0): NONE, (two, 1): NONE}


@pytest.mark.parametrize("version", [1, 2])
def test_what_is_not_there_cannot_be_moved(
    wire: WireClient, two: str, log_dir: str, version: int
) -> None:
    told = move(wire, (log_dir, {two: [0, 7, -1], "nope": [0]}), version=version)

    missing = dict.fromkeys([(two, 7), (two, -1), ("nope", 0)], UNKNOWN_TOPIC)
    assert told == {(two, 0): NONE, **missing}


def test_a_directory_must_be_written_as_it_is_told(
    wire: WireClient, topic: str, log_dir: str
) -> None:
    for path in ("/no/such/directory", "relative", "", f"{log_dir}/", f"{log_dir}/../data"):
        told = move(wire, (path, {topic: [0], "nope": [0]}))

        assert told == {(topic, 0): LOG_DIR_NOT_FOUND, ("nope", 0): LOG_DIR_NOT_FOUND}, path


def test_the_last_wish_for_a_partition_counts(wire: WireClient, topic: str, log_dir: str) -> None:
    here, there = (log_dir, {topic: [0, 0]}), ("/elsewhere", {topic: [0]})

    assert move(wire, there, here) == {(topic, 0): NONE}
    assert move(wire, here, there) == {(topic, 0): LOG_DIR_NOT_FOUND}
    assert move(wire, (log_dir, {topic: []})) == {}


# --- AlterPartitionReassignments and ListPartitionReassignments

Replicas = list[int] | None


def reassign(
    wire: WireClient, *wishes: tuple[str, int, Replicas], version: int = 1, **options: Any
) -> list[tuple[str, int, int, str | None]]:
    """Ask for replicas elsewhere, and return what is said of each partition."""
    topics = [
        {"name": name, "partitions": [{"partition_index": index, "replicas": replicas}]}
        for name, index, replicas in wishes
    ]
    answer = wire.call(
        ALTER_PARTITION_REASSIGNMENTS, version, timeout=TIMEOUT_MS, topics=topics, **options
    )
    assert (answer.error_code, answer.error_message) == (NONE, None)
    if version >= 1:
        expected = options.get("allow_replication_factor_change", True)
        assert answer.allow_replication_factor_change is expected
    return [
        (topic.name, one.partition_index, int(one.error_code), one.error_message)
        for topic in answer.responses
        for one in topic.partitions
    ]


@pytest.mark.parametrize("version", [0, 1])
def test_a_partition_may_be_reassigned_to_its_broker(
    wire: WireClient, two: str, node_id: int, version: int
) -> None:
    told = reassign(wire, (two, 1, [node_id]), (two, 0, [node_id]), version=version)

    assert told == [(two, 1, NONE, None), (two, 0, NONE, None)]


@pytest.mark.parametrize("version", [0, 1])
def test_replicas_on_other_brokers_are_refused(
    wire: WireClient, topic: str, node_id: int, version: int
) -> None:
    no_broker = "includes broker 4711, but no such broker is registered."
    for replicas, words in (
        ([4711], no_broker),
        ([node_id, 4711], no_broker),
        ([4712, 4711], no_broker),
        ([node_id, node_id], f"includes the broker {node_id} more than once."),
        ([], "includes an empty replica list."),
    ):
        (told,) = reassign(wire, (topic, 0, replicas), version=version)

        words = f"The manual partition assignment {words}"
        assert told == (topic, 0, INVALID_REPLICA_ASSIGNMENT, words)


@pytest.mark.parametrize("version", [0, 1])
def test_there_is_no_reassignment_to_cancel(
    wire: WireClient, topic: str, node_id: int, version: int
) -> None:
    told = reassign(wire, (topic, 0, [node_id]), (topic, 0, None), version=version)

    assert told == [(topic, 0, NONE, None), (topic, 0, NO_REASSIGNMENT_IN_PROGRESS, None)]


@pytest.mark.parametrize("replicas", [None, [1], [4711]])
def test_what_is_not_there_cannot_be_reassigned(
    wire: WireClient, topic: str, replicas: Replicas
) -> None:
    told = reassign(wire, ("nope", 0, replicas), (topic, 7, replicas), (topic, -1, replicas))

    assert told == [
        ("nope", 0, UNKNOWN_TOPIC, "Unable to find a topic named nope."),
        (topic, 7, UNKNOWN_TOPIC, f"Unable to find partition {topic}:7."),
        (topic, -1, UNKNOWN_TOPIC, f"Unable to find partition {topic}:-1."),
    ]


def test_the_replication_factor_stays_whether_it_may_change_or_not(
    wire: WireClient, topic: str, node_id: int
) -> None:
    fixed = {"allow_replication_factor_change": False}

    assert reassign(wire, (topic, 0, [node_id]), **fixed) == [(topic, 0, NONE, None)]
    ((_, _, error, _),) = reassign(wire, (topic, 0, [node_id, 4711]), **fixed)
    assert error == INVALID_REPLICA_ASSIGNMENT


def test_nothing_reassigned_is_no_error(wire: WireClient) -> None:
    answer = wire.call(ALTER_PARTITION_REASSIGNMENTS, 1, timeout=TIMEOUT_MS, topics=[])

    assert (answer.error_code, answer.error_message, answer.responses) == (NONE, "", ())


def test_no_reassignment_is_under_way(wire: WireClient, topic: str, node_id: int) -> None:
    reassign(wire, (topic, 0, [node_id]))
    named = [{"name": name, "partition_indexes": [0, 7]} for name in (topic, "nope")]

    for topics in (None, [], named):
        answer = wire.call(LIST_PARTITION_REASSIGNMENTS, 0, timeout=TIMEOUT_MS, topics=topics)

        assert (answer.error_code, answer.error_message, answer.topics) == (NONE, None, ())


# --- DescribeQuorum


def describe_quorum(wire: WireClient, *topics: tuple[str, list[int]], version: int = 2) -> Any:
    asked = [
        {
            "topic_name": name,
            "partitions": [{"partition_index": index} for index in partitions],
        }
        for name, partitions in topics
    ]
    return wire.call(DESCRIBE_QUORUM, version, topics=asked)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_the_one_node_leads_and_is_the_only_voter(
    wire: WireClient, node_id: int, version: int
) -> None:
    answer = describe_quorum(wire, METADATA_LOG, version=version)

    assert answer.error_code == NONE
    (topic,) = answer.topics
    (partition,) = topic.partitions
    assert (topic.topic_name, partition.partition_index) == ("__cluster_metadata", 0)
    assert (partition.error_code, partition.observers) == (NONE, ())
    assert (partition.leader_id, partition.leader_epoch) == (node_id, 1)
    (voter,) = partition.current_voters
    assert voter.replica_id == node_id
    assert voter.log_end_offset >= partition.high_watermark > 0
    if version >= 1:
        assert voter.last_fetch_timestamp == voter.last_caught_up_timestamp > 0
    if version >= 2:
        assert (answer.error_message, partition.error_message) == ("", "")
        assert voter.replica_directory_id is None


def test_the_voters_listener_is_told(engine: Engine, wire: WireClient, node_id: int) -> None:
    (node,) = describe_quorum(wire, METADATA_LOG).nodes

    (listener,) = node.listeners
    assert (node.node_id, listener.host) == (node_id, "127.0.0.1")
    if engine.name == "headrace":
        # It has none for controllers: the one for clients is told.
        assert (listener.name, listener.port) == ("PLAINTEXT", int(engine.bootstrap.split(":")[1]))
    else:
        assert listener.name == "CONTROLLER"


def test_the_metadata_log_grows_with_the_topics(
    wire: WireClient, new_topic: Callable[..., str]
) -> None:
    def high_watermark() -> int:
        offset: int = describe_quorum(wire, METADATA_LOG).topics[0].partitions[0].high_watermark
        return offset

    before = high_watermark()
    new_topic()

    assert high_watermark() > before


@pytest.mark.parametrize("version", [0, 1, 2])
def test_there_is_no_quorum_of_anything_else(wire: WireClient, topic: str, version: int) -> None:
    for asked in (
        [(topic, [0])],
        [("nope", [0, 1])],
        [("__cluster_metadata", [1])],
        [("__cluster_metadata", [0, 1])],
        [METADATA_LOG, (topic, [0])],
        [METADATA_LOG, METADATA_LOG],
        [("__cluster_metadata", [])],
        [],
    ):
        answer = describe_quorum(wire, *asked, version=version)

        assert answer.error_code == NONE
        told = [
            (each.topic_name, [one.partition_index for one in each.partitions])
            for each in answer.topics
        ]
        assert told == asked
        for one in (one for each in answer.topics for one in each.partitions):
            assert (one.error_code, one.leader_id, one.current_voters) == (UNKNOWN_TOPIC, 0, ())
            if version >= 2:
                assert one.error_message == "This server does not host this topic-partition."
        if version >= 2:
            assert (answer.error_message, answer.nodes) == ("", ())
