from pathlib import Path
from typing import Any

import pytest
from kio.schema.alter_replica_log_dirs.v2.request import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from kio.schema.errors import ErrorCode
from tests.at_once import at_once
from tests.broker.handlers.conftest import VERSIONS

from headrace.broker.state import BrokerState

ALTER_REPLICA_LOG_DIRS = 34


@pytest.fixture(autouse=True)
def _topic(broker: BrokerState) -> None:
    at_once(broker.topics.create("t", 2, {}))


def a_request(*wishes: tuple[Path | str, str, tuple[int, ...]]) -> AlterReplicaLogDirsRequest:
    return AlterReplicaLogDirsRequest(
        dirs=tuple(
            AlterReplicaLogDir(
                path=str(path), topics=(AlterReplicaLogDirTopic(name=name, partitions=partitions),)
            )
            for path, name, partitions in wishes
        )
    )


def codes(answer: Any) -> list[tuple[str, int, ErrorCode]]:
    return [
        (topic.topic_name, one.partition_index, one.error_code)
        for topic in answer.results
        for one in topic.partitions
    ]


@pytest.mark.parametrize("version", VERSIONS["alter_replica_log_dirs"])
def test_every_version_accepts_the_directory_that_there_is(
    version: int, ask: Any, tmp_path: Path
) -> None:
    answer = ask(ALTER_REPLICA_LOG_DIRS, a_request((tmp_path, "t", (0, 1))), version)

    assert codes(answer) == [("t", 0, ErrorCode.none), ("t", 1, ErrorCode.none)]


@pytest.mark.parametrize("path", ["/no/such/directory", "relative", ""])
@pytest.mark.parametrize("topic", ["t", "nope"])
def test_another_directory_is_refused_whatever_the_topic(topic: str, path: str, ask: Any) -> None:
    answer = ask(ALTER_REPLICA_LOG_DIRS, a_request((path, topic, (0,))))

    assert codes(answer) == [(topic, 0, ErrorCode.log_dir_not_found)]


def test_what_is_not_there_cannot_be_moved(ask: Any, tmp_path: Path) -> None:
    asked = a_request((tmp_path, "nope", (0,)), (tmp_path, "t", (2, 0, -1)))

    answer = ask(ALTER_REPLICA_LOG_DIRS, asked)

    unknown = ErrorCode.unknown_topic_or_partition
    assert codes(answer) == [
        ("nope", 0, unknown),
        ("t", 2, unknown),
        ("t", 0, ErrorCode.none),
        ("t", -1, unknown),
    ]


def test_the_last_wish_for_a_partition_counts(ask: Any, tmp_path: Path) -> None:
    here, there = (tmp_path, "t", (0,)), ("/elsewhere", "t", (0,))

    assert codes(ask(ALTER_REPLICA_LOG_DIRS, a_request(there, here))) == [("t", 0, ErrorCode.none)]
    assert codes(ask(ALTER_REPLICA_LOG_DIRS, a_request(here, there))) == [
        ("t", 0, ErrorCode.log_dir_not_found)
    ]
