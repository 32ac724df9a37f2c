"""Kafka's own command line tools work on headrace's port. Every run costs a JVM, so the tests
follow one another through the life of one topic each."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.interop.wire import EARLIEST, LATEST, WireClient

from headrace.kafka.tools import TOPIC_COMMAND, Completed, run_tool
from headrace.testing import RunningBroker, running_broker

pytestmark = [pytest.mark.java, pytest.mark.usefixtures("needs_java")]

TOOLS = "org.apache.kafka.tools"
CONFIG_COMMAND = "kafka.admin.ConfigCommand"
PERFORMANCE_MESSAGES = 100_000


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    with running_broker() as running:
        yield running


def run(broker: RunningBroker, tool: str, *arguments: str | Path) -> str:
    """Run a tool that must succeed and have nothing to warn of; return what it printed."""
    answer = run_any(broker, tool, *arguments)
    assert (answer.return_code, answer.stderr) == (0, ""), answer.stdout
    return answer.stdout


def run_any(broker: RunningBroker, tool: str, *arguments: str | Path) -> Completed:
    return run_tool(tool, "--bootstrap-server", broker.bootstrap, *arguments)


def test_topic_command_leads_a_topic_through_its_life(broker: RunningBroker) -> None:
    topic = ("--topic", "life")

    created = run(
        broker, TOPIC_COMMAND, "--create", *topic, "--partitions", "2", "--config", "segment.ms=9"
    )
    refused = run_any(broker, TOPIC_COMMAND, "--create", *topic)
    run(broker, TOPIC_COMMAND, "--alter", *topic, "--partitions", "3")
    described = run(broker, TOPIC_COMMAND, "--describe", *topic)
    run(broker, TOPIC_COMMAND, "--delete", *topic)
    listed = run(broker, TOPIC_COMMAND, "--list")

    assert created == "Created topic life.\n"
    assert refused.return_code == 1
    assert "Topic 'life' already exists." in refused.stdout
    assert re.search(
        r"Topic: life\tTopicId: \S{22}\tPartitionCount: 3\tReplicationFactor: 1\t"
        r"Configs: segment.ms=9\n",
        described,
    )
    assert re.findall(r"Partition: (\d)\tLeader: 1\tReplicas: 1\tIsr: 1", described) == list("012")
    assert "life" not in listed.splitlines()


def test_config_command_changes_a_topic_and_a_broker(broker: RunningBroker) -> None:
    with WireClient(broker.bootstrap) as wire:
        wire.create_topic("configured", retention_ms=5)
    topic = ("--entity-type", "topics", "--entity-name", "configured")
    brokers = ("--entity-type", "brokers", "--entity-default")

    run(
        broker,
        CONFIG_COMMAND,
        *("--alter", *topic, "--delete-config", "retention.ms"),
        *("--add-config", "segment.ms=12345678,cleanup.policy=[compact,delete]"),
    )
    run(broker, CONFIG_COMMAND, "--alter", *brokers, "--add-config", "log.segment.bytes=2097152")
    own = run(broker, CONFIG_COMMAND, "--describe", *topic)
    everything = run(broker, CONFIG_COMMAND, "--describe", *topic, "--all")
    refused = run_any(
        broker, CONFIG_COMMAND, "--alter", *topic, "--add-config", "segment.bytes=1000"
    )

    assert set(re.findall(r"^  (\S+)=(\S+) ", own, re.MULTILINE)) == {
        ("segment.ms", "12345678"),
        ("cleanup.policy", "compact,delete"),
    }
    assert len(re.findall(r"^  \S+=", everything, re.MULTILINE)) == 33
    assert "  retention.ms=604800000 " in everything
    assert "DYNAMIC_DEFAULT_BROKER_CONFIG:log.segment.bytes=2097152" in everything
    assert refused.return_code == 1
    assert "Value must be at least 1048576" in refused.stderr + refused.stdout


def test_what_producer_performance_wrote_is_counted_measured_and_deleted(
    broker: RunningBroker, tmp_path: Path
) -> None:
    offsets_file = tmp_path / "offsets.json"
    partition = {"topic": "performance", "partition": 0, "offset": 99}
    offsets_file.write_text(json.dumps({"version": 1, "partitions": [partition]}))

    # The topic is made by the broker, when the producer first asks for it. Asking too early
    # is worth a warning to Kafka's client, so stderr is not looked at.
    produced = run_any(
        broker,
        f"{TOOLS}.ProducerPerformance",
        *("--topic", "performance", "--num-records", str(PERFORMANCE_MESSAGES)),
        *("--record-size", "100", "--throughput", "-1"),
        *("--command-property", "acks=all", "linger.ms=5"),
    )
    counted = run(broker, f"{TOOLS}.GetOffsetShell", "--topic", "performance", "--time", "-1")
    measured = run(broker, f"{TOOLS}.LogDirsCommand", "--describe", "--topic-list", "performance")
    deleted = run(broker, f"{TOOLS}.DeleteRecordsCommand", "--offset-json-file", offsets_file)

    # A slow run is told of every five seconds; the last line counts them all.
    assert f"\n{PERFORMANCE_MESSAGES} records sent, " in f"\n{produced.stdout}"
    assert counted == f"performance:0:{PERFORMANCE_MESSAGES}\n"
    (log_dir,) = json.loads(measured.splitlines()[-1])["brokers"][0]["logDirs"]
    assert log_dir["logDir"] == str(broker.data_dir)
    logs = (broker.data_dir / "performance-0").glob("*.log")
    assert log_dir["partitions"] == [
        {
            "partition": "performance-0",
            "size": sum(path.stat().st_size for path in logs),
            "offsetLag": 0,
            "isFuture": False,
        }
    ]
    assert "partition: performance-0\tlow_watermark: 99" in deleted
    with WireClient(broker.bootstrap) as wire:
        assert wire.list_offset("performance", EARLIEST).offset == 99
        assert wire.list_offset("performance", LATEST).offset == PERFORMANCE_MESSAGES


def test_verifiable_producer_gets_every_message_acknowledged(broker: RunningBroker) -> None:
    with WireClient(broker.bootstrap) as wire:
        wire.create_topic("verified")

    output = run(
        broker,
        f"{TOOLS}.VerifiableProducer",
        *("--topic", "verified", "--max-messages", "500", "--acks", "-1"),
    )

    events = [json.loads(line) for line in output.splitlines()]
    acknowledged = [event for event in events if event["name"] == "producer_send_success"]
    assert [event["offset"] for event in acknowledged] == list(range(500))
    assert (events[-1]["sent"], events[-1]["acked"]) == (500, 500)


def test_the_java_client_can_use_the_newest_version_of_every_api_here(
    broker: RunningBroker,
) -> None:
    output = run(broker, f"{TOOLS}.BrokerApiVersionsCommand")

    served = re.findall(r"(\w+)\(\d+\): (?:\d+ to )?(\d+) \[usable: (\d+)\]", output)
    assert {"Produce", "Fetch", "DescribeTopicPartitions"} <= {name for name, _, _ in served}
    assert all(newest == usable for _, newest, usable in served)
