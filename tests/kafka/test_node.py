import pytest

from headrace.client.cluster_questions import is_serving
from headrace.kafka.errors import NodeError
from headrace.kafka.jvm import archive_path
from headrace.kafka.node import KafkaNode
from headrace.kafka.tools import (
    CONSOLE_CONSUMER,
    CONSOLE_PRODUCER,
    TOPIC_COMMAND,
    dump_log_segments,
    run_tool,
)


@pytest.mark.java
def test_a_started_node_answers_and_a_stopped_one_does_not(tmp_path):
    with KafkaNode(tmp_path) as node:
        assert node.process is not None
        process = node.process
        assert node.ready_seconds > 0
        assert is_serving(("127.0.0.1", node.port))

    assert process.returncode == 143
    assert not is_serving(("127.0.0.1", node.port))
    assert archive_path().exists()


@pytest.mark.java
def test_a_second_node_on_a_live_directory_is_refused_before_java_starts(kafka_node):
    intruder = KafkaNode(kafka_node.directory)

    with pytest.raises(NodeError, match="another Kafka node runs in"):
        intruder.start()

    assert intruder.process is None
    assert is_serving(("127.0.0.1", kafka_node.port))


@pytest.mark.java
def test_a_node_that_cannot_start_says_why_and_leaves_nothing_running(tmp_path, kafka_node):
    node = KafkaNode(tmp_path, port=kafka_node.port)

    with pytest.raises(NodeError, match="Address already in use") as caught:
        node.start()

    assert str(node.log_file) in str(caught.value)
    assert node.process is None


@pytest.mark.java
def test_a_bad_setting_is_named_when_formatting(tmp_path):
    with pytest.raises(NodeError, match=r"log\.segment\.bytes"):
        KafkaNode(tmp_path, settings={"log.segment.bytes": "few"}).start()


@pytest.mark.java
def test_tools_write_and_read_messages_and_dump_the_files(kafka_node):
    server = ["--bootstrap-server", kafka_node.bootstrap, "--topic", "tools"]
    created = run_tool(TOPIC_COMMAND, *server, "--create", "--partitions", "1")
    produced = run_tool(CONSOLE_PRODUCER, *server, stdin="hello\nworld\n")
    consumed = run_tool(CONSOLE_CONSUMER, *server, "--from-beginning", "--max-messages", "2")
    log = kafka_node.data_directory / "tools-0" / "00000000000000000000.log"
    dumped = dump_log_segments([log], "--deep-iteration", "--print-data-log")

    assert (created.return_code, created.stdout) == (0, "Created topic tools.\n")
    assert (produced.return_code, produced.stdout, produced.stderr) == (0, "", "")
    assert (consumed.return_code, consumed.stdout) == (0, "hello\nworld\n")
    assert (dumped.return_code, dumped.stderr) == (0, "")
    assert "payload: hello" in dumped.stdout


@pytest.mark.java
def test_a_tool_that_fails_shows_it(tmp_path):
    answer = dump_log_segments([tmp_path / "absent.log"])

    assert answer.return_code != 0
    assert "absent.log" in answer.stdout + answer.stderr
