"""What the tests of the commands share: both engines, and a way to run a command against one."""

import json
import uuid
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from typer.testing import CliRunner

from headrace.cli.app import app
from headrace.cli.connection import Connection
from headrace.kafka.node import KafkaNode
from headrace.testing import running_broker


class Answer(NamedTuple):
    """How a command ended and what it printed."""

    code: int
    stdout: str
    stderr: str

    @property
    def lines(self) -> list[str]:
        return self.stdout.splitlines()

    @property
    def objects(self) -> list[Any]:
        return [json.loads(line) for line in self.lines]


Run = Callable[..., Answer]


@pytest.fixture(
    scope="session",
    params=["headrace", pytest.param("kafka", marks=[pytest.mark.slow, pytest.mark.java])],
)
def bootstrap(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """Where a broker listens; every command must do the same on both engines."""
    if request.param == "headrace":
        with running_broker() as broker:
            yield broker.bootstrap
    else:
        with KafkaNode(tmp_path_factory.mktemp("kafka")) as node:
            yield node.bootstrap


@pytest.fixture
def run(bootstrap: str) -> Run:
    """Run a command against the broker: `run("topics", "list")`."""

    def invoke(*words: object) -> Answer:
        environment = {"HEADRACE_BOOTSTRAP": bootstrap, "NO_COLOR": "1"}
        result = CliRunner().invoke(app, [str(word) for word in words], env=environment)
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Answer(result.exit_code, result.stdout, result.stderr)

    return invoke


@pytest.fixture
def connection(bootstrap: str) -> Connection:
    return Connection(bootstrap, timeout_s=120)


@pytest.fixture
def topic(run: Run) -> str:
    """A new topic of three partitions."""
    name = f"t-{uuid.uuid4().hex}"
    assert run("topics", "create", name, "--partitions", 3).code == 0
    while run("topics", "describe", name).code:
        pass  # real Kafka answers before its broker has heard of the topic from the controller
    return name


@pytest.fixture
def messages(run: Run, connection: Connection, topic: str) -> str:
    """A topic with 10, 20 and 30 messages in its partitions, their timestamps 1000, 2000, …"""
    # By those timestamps they are decades old: retention would take them away.
    assert run("configs", "set", "topic", topic, "retention.ms=-1").code == 0
    producer = connection.producer({"linger.ms": 1})
    for partition, count in enumerate((10, 20, 30)):
        for number in range(count):
            producer.produce(
                topic, f"{number}".encode(), partition=partition, timestamp=(number + 1) * 1000
            )
    assert producer.flush(120) == 0
    return topic


@pytest.fixture
def group(run: Run, messages: str) -> str:
    """A group without members that has committed offset 5 of partitions 0 and 1."""
    name = f"g-{uuid.uuid4().hex}"
    answer = run("groups", "reset", name, "--to", 5, "--topic", f"{messages}:0,1", "--yes")
    assert answer.code == 0, answer.stderr
    return name
