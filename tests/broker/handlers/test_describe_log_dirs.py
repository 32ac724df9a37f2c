import shutil
from pathlib import Path
from typing import Any

import pytest
from kio.schema.describe_log_dirs.v5.request import DescribableLogDirTopic, DescribeLogDirsRequest
from kio.schema.errors import ErrorCode
from tests.at_once import at_once
from tests.broker.handlers.conftest import VERSIONS

from headrace.broker.state import BrokerState

DESCRIBE_LOG_DIRS = 35


def a_request(*topics: tuple[str, tuple[int, ...]]) -> DescribeLogDirsRequest:
    return DescribeLogDirsRequest(
        topics=tuple(
            DescribableLogDirTopic(topic=name, partitions=partitions) for name, partitions in topics
        )
    )


def sizes_of(answer: Any) -> dict[tuple[str, int], int]:
    (result,) = answer.results
    return {
        (topic.name, row.partition_index): row.partition_size
        for topic in result.topics
        for row in topic.partitions
    }


@pytest.mark.parametrize("version", VERSIONS["describe_log_dirs"])
def test_every_version_tells_the_size_of_all_partitions(
    version: int, broker: BrokerState, ask: Any, append: Any, tmp_path: Path
) -> None:
    at_once(broker.topics.create("t", 2, {}))
    append("t", 0, 1_700_000_000_000)

    answer = ask(DESCRIBE_LOG_DIRS, DescribeLogDirsRequest(topics=None), version)

    log_size = (tmp_path / "t-0" / f"{0:020d}.log").stat().st_size
    assert log_size > 0
    assert sizes_of(answer) == {("t", 0): log_size, ("t", 1): 0}
    (result,) = answer.results
    assert (result.error_code, result.log_dir) == (ErrorCode.none, str(tmp_path))
    if version >= 4:
        assert result.total_bytes == shutil.disk_usage(tmp_path).total
        assert 0 < result.usable_bytes <= result.total_bytes


def test_only_partitions_that_exist_are_described(broker: BrokerState, ask: Any) -> None:
    at_once(broker.topics.create("t", 3, {}))

    answer = ask(DESCRIBE_LOG_DIRS, a_request(("t", (1, 3, -1)), ("nope", (0,))))

    assert sizes_of(answer) == {("t", 1): 0}


def test_sizes_are_told_without_opening_logs(broker: BrokerState, ask: Any, tmp_path: Path) -> None:
    at_once(broker.topics.create("t", 1, {}))
    (tmp_path / "t-0").mkdir()
    (tmp_path / "t-0" / f"{0:020d}.log").write_bytes(b"x" * 100)
    (tmp_path / "t-0" / f"{7:020d}.log").write_bytes(b"x" * 11)
    (tmp_path / "t-0" / f"{7:020d}.index").write_bytes(b"x" * 8)

    answer = ask(DESCRIBE_LOG_DIRS, a_request(("t", (0,))))

    assert sizes_of(answer) == {("t", 0): 111}
    assert list((tmp_path / "t-0").glob("*.timeindex")) == []
    shutil.rmtree(tmp_path / "t-0")
