"""Many partitions: few open files, a start that does not depend on how many there are."""

import resource
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from confluent_kafka import KafkaError, Message, Producer

from headrace.testing import BrokerProcess, broker_process

PARTITIONS = 5_000
OPEN_FILES = 1_024  # what a shell gives by default


@pytest.fixture
def few_open_files() -> Iterator[None]:
    """Brokers started by this test may open no more than OPEN_FILES."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, OPEN_FILES), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def facts(broker: BrokerProcess, moment: str) -> int:
    """Print what is not asserted, return the number of open files."""
    process = psutil.Process(broker.pid)
    fds = process.num_fds()
    rss = process.memory_info().rss // 2**20
    print(f"{moment}: ready in {broker.ready_seconds:.2f} s, RSS {rss} MB, {fds} open files")
    return fds


def touch_all(broker: BrokerProcess) -> None:
    delivered: set[int] = set()
    failures: list[KafkaError] = []

    def on_delivery(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            failures.append(error)
        else:
            delivered.add(message.partition())

    producer = Producer({"bootstrap.servers": broker.bootstrap, "acks": 1, "log_level": 0})
    for partition in range(PARTITIONS):
        producer.produce("wide", b"%d" % partition, partition=partition, on_delivery=on_delivery)
        producer.poll(0)
    assert producer.flush(120) == 0
    assert not failures
    assert len(delivered) == PARTITIONS


def assert_all_there(wire: Any) -> None:
    for partition in range(0, PARTITIONS, 97):
        assert wire.values("wide", partition) == [b"%d" % partition]


def test_five_thousand_partitions_need_few_files_and_come_back(
    few_open_files: None, tmp_path: Path, connect: Callable[..., Any]
) -> None:
    with broker_process(tmp_path) as broker:
        assert connect(broker.port).create_topic("wide", PARTITIONS) == 0
        facts(broker, "created")
        touch_all(broker)
        assert facts(broker, "all touched") < OPEN_FILES
        assert broker.terminate(120) == 0

    with broker_process(tmp_path) as broker:
        facts(broker, "after a clean stop")
        assert "repaired" not in broker.stderr_text()
        assert_all_there(connect(broker.port))
        assert broker.terminate(120) == 0


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_five_thousand_partitions_come_back_after_a_kill(
    few_open_files: None, tmp_path: Path, connect: Callable[..., Any]
) -> None:
    with broker_process(tmp_path) as broker:
        assert connect(broker.port).create_topic("wide", PARTITIONS) == 0
        touch_all(broker)
        broker.kill()

    with broker_process(tmp_path, wait=False) as broker:
        broker.wait_ready(300)
        assert facts(broker, "after kill -9") < OPEN_FILES
        assert_all_there(connect(broker.port))
