import os
import signal
import subprocess
from pathlib import Path

import pytest
from tests.cli.conftest import Run
from tests.cli.processes import end_of, headrace_process, read_lines, read_until

from headrace.cli.connection import Connection
from headrace.cli.consume.read_range import ENDLESS
from headrace.cli.consume.reading import Reader
from headrace.cli.consume.record_format import value_format
from headrace.cli.endings import CommandError
from headrace.cli.outage import Outage
from headrace.testing import broker_process


def produce(connection: Connection, topic: str, *values: str, partition: int = 0) -> None:
    producer = connection.producer({"linger.ms": 0})
    for value in values:
        producer.produce(topic, value.encode(), partition=partition)
    assert producer.flush(120) == 0


def read_on(reader: Reader) -> None:
    while True:
        reader.read()


def test_it_prints_all_there_is_and_ends(run: Run, messages: str) -> None:
    answer = run("consume", messages)

    assert (answer.code, answer.stderr) == (0, "")
    assert len(answer.lines) == 60
    assert sorted(map(int, answer.lines))[-1] == 29


def test_partitions_may_be_chosen(run: Run, messages: str) -> None:
    answer = run("consume", messages, "--partition", "0,2", "--format", r"%p:%s\n")

    assert len(answer.lines) == 40
    assert {line[0] for line in answer.lines} == {"0", "2"}
    zeros = [line for line in answer.lines if line[0] == "0"]
    assert zeros == [f"0:{number}" for number in range(10)]


def test_several_topics_may_be_read(run: Run, messages: str, connection: Connection) -> None:
    other = f"{messages}-other"
    run("topics", "create", other)
    produce(connection, other, "x")

    assert len(run("consume", messages, other).lines) == 61


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--from", "7"], ["7", "8", "9"]),
        (["--from", "oldest", "--to", "2"], ["0", "1"]),
        (["--from", "3", "--to", "5"], ["3", "4"]),
        (["--from", "-2"], ["8", "9"]),
        (["--from", "-99", "--count", "1"], ["0"]),
        (["--from", "+8"], ["8", "9"]),
        (["--from", "latest"], []),
        (["--from", "10"], []),
        (["--from", "@9000"], ["8", "9"]),
        (["--from", "@99999999"], []),
        (["--to", "@3000"], ["0", "1"]),
        (["--to", "-8"], ["0", "1"]),
        (["--to", "99"], [str(number) for number in range(10)]),
        (["--from", "1970-01-01T00:00:10"], ["9"]),
        (["--from", "-1h"], []),
        (["--count", "2"], ["0", "1"]),
        (["--grep", "[78]"], ["7", "8"]),
        (["--grep", "[78]", "--count", "1"], ["7"]),
        (["--key", "k"], []),
        (["--header", "h"], []),
    ],
)
def test_it_begins_and_stops_where_it_is_told(
    run: Run, messages: str, options: list[str], expected: list[str]
) -> None:
    answer = run("consume", messages, "--partition", 0, *options)

    assert (answer.code, answer.lines) == (0, expected)


def test_records_are_chosen_by_key_and_header(run: Run, topic: str, connection: Connection) -> None:
    producer = connection.producer()
    for number in range(3):
        producer.produce(topic, f"{number}", f"key-{number}", headers={"n": f"{number}"})
    producer.produce(topic, "3")
    assert producer.flush(120) == 0

    assert run("consume", topic, "--key", "key-1").lines == ["1"]
    assert sorted(run("consume", topic, "--key-regex", "-[12]$").lines) == ["1", "2"]
    assert run("consume", topic, "--header", "n=2").lines == ["2"]
    assert len(run("consume", topic, "--header", "n").lines) == 3
    assert run("consume", topic, "--header", "n", "--key", "key-0", "--grep", "9").lines == []


def test_output_as_json_and_with_zero_bytes(run: Run, messages: str) -> None:
    options = ["--partition", 0, "--count", 2]

    by_json = run("consume", messages, *options, "--json")
    assert by_json.stdout == run("consume", messages, *options, "--output", "jsonl").stdout
    assert by_json.objects[1] == {
        "topic": messages,
        "partition": 0,
        "offset": 1,
        "timestamp": 2000,
        "key": None,
        "headers": [],
        "value": "1",
    }
    assert run("consume", messages, *options, "--null").stdout == "0\0001\000"


def test_records_of_any_timestamp_are_shown(run: Run, topic: str, connection: Connection) -> None:
    any_time = "message.timestamp.after.max.ms=9223372036854775807"
    assert run("configs", "set", "topic", topic, any_time).code == 0
    producer = connection.producer()
    for timestamp in (1, 2**62, -5):
        producer.produce(topic, b"v", timestamp=timestamp, partition=0)
    assert producer.flush(120) == 0

    as_json, described = run("consume", topic, "--json"), run("topics", "describe", topic)

    assert [each["timestamp"] for each in as_json.objects] == [1, 2**62, None]
    assert run("consume", topic, "--format", r"%T\n").lines == ["1", str(2**62), "-5"]
    assert (described.code, described.stderr) == (0, "")


def test_an_unknown_topic_is_told_and_not_created(run: Run, topic: str) -> None:
    absent = f"{topic}-absent"

    answer = run("consume", topic, absent)

    assert answer.code == 1
    assert f"there is no topic {absent}" in answer.stderr
    assert absent not in run("topics", "list").stdout


@pytest.mark.parametrize(
    ("options", "code", "reason"),
    [
        (["--from", "31"], 1, "--from 31 is out of range: partition 0"),
        (["--partition", "5"], 1, "has no partition 5, only 0 to 2"),
        (["--partition", "a"], 2, "write numbers of partitions"),
        (["--from", "whenever"], 2, "is no position"),
        (["--from", "@99999999999999999999"], 2, "times are in the years 1970 to 9999"),
        (["--to", "99999999999999999999"], 2, "no offset is beyond"),
        (["--grep", "("], 2, "no regular expression"),
        (["--format", "%q"], 2, "%q means nothing"),
        (["--format", "%s", "--json"], 2, "drop --json"),
    ],
)
def test_what_cannot_be_is_told_in_a_sentence(
    run: Run, messages: str, options: list[str], code: int, reason: str
) -> None:
    answer = run("consume", messages, *options)

    assert (answer.code, answer.stdout) == (code, "")
    assert reason in answer.stderr


def test_an_offset_that_was_deleted_is_out_of_range(
    run: Run, messages: str, connection: Connection
) -> None:
    connection.admin().delete_records({(messages, 0): 5})

    answer = run("consume", messages, "--partition", 0, "--from", 2)

    assert answer.code == 1
    assert "has offsets 5 up to 10" in answer.stderr
    assert run("consume", messages, "--partition", 0).lines == ["5", "6", "7", "8", "9"]


def test_without_follow_it_ends_at_the_end_as_it_was_though_more_comes(
    bootstrap: str, messages: str, connection: Connection
) -> None:
    """A reader slower than the writer would else never end."""
    with headrace_process(bootstrap, "consume", messages, "--partition", 0) as process:
        read_lines(process.stdout, 1)
        produce(connection, messages, "late")
        code, rest, _ = end_of(process)

    assert code == 0
    assert rest.splitlines() == [str(number) for number in range(1, 10)]


def test_aborted_records_and_markers_at_the_end_do_not_hold_it_up(
    run: Run, topic: str, connection: Connection
) -> None:
    from confluent_kafka import KafkaException

    producer = connection.producer({"transactional.id": f"x-{topic}"})
    try:
        producer.init_transactions(5)
    except KafkaException:
        pytest.skip("this broker has no transactions")
    producer.begin_transaction()
    producer.produce(topic, "kept", partition=0)
    producer.commit_transaction(60)
    producer.begin_transaction()
    producer.produce(topic, "aborted", partition=0)
    producer.flush(120)
    producer.abort_transaction(60)

    assert run("consume", topic).lines == ["kept"]


def test_following_goes_on_with_what_comes_and_ctrl_c_ends_it_with_130(
    bootstrap: str, messages: str, connection: Connection
) -> None:
    words = ("consume", messages, "--partition", 0, "--follow", "--from", 9)
    with headrace_process(bootstrap, *words) as process:
        assert read_lines(process.stdout, 1) == ["9"]
        produce(connection, messages, "new")
        assert read_lines(process.stdout, 1) == ["new"]
        process.send_signal(signal.SIGINT)
        assert end_of(process) == (130, "", "")


def test_following_begins_at_the_latest_and_may_have_an_end(
    bootstrap: str, messages: str, connection: Connection
) -> None:
    words = ("consume", messages, "--partition", 0, "--follow", "--to", "+2")
    with headrace_process(bootstrap, *words) as process:
        # What comes before it has asked for the end does not count, so more has to come.
        while process.poll() is None:
            produce(connection, messages, "new")
            try:
                process.wait(0.2)
            except subprocess.TimeoutExpired:
                continue
        code, out, _ = end_of(process)

    assert (code, out) == (0, "new\nnew\n")


def test_following_may_end_at_a_time_to_come(
    bootstrap: str, messages: str, connection: Connection
) -> None:
    words = ("consume", messages, "--partition", 0, "--follow", "--from", 8, "--to", "@20000")
    with headrace_process(bootstrap, *words) as process:
        assert read_lines(process.stdout, 2) == ["8", "9"]
        producer = connection.producer({"linger.ms": 0})
        for value, timestamp_ms in (("before", 19_999), ("at", 20_000), ("after", 20_001)):
            producer.produce(messages, value, partition=0, timestamp=timestamp_ms)
        assert producer.flush(120) == 0
        assert end_of(process) == (0, "before\n", "")


def test_a_closed_pipe_ends_it_quietly(bootstrap: str, messages: str) -> None:
    with headrace_process(bootstrap, "consume", messages, "--follow", "--from", 0) as process:
        read_lines(process.stdout, 60)
        assert process.stdout is not None
        process.stdout.close()  # nothing more comes: it has to notice without writing
        assert process.wait(120) == 0
        assert process.stderr is not None
        assert process.stderr.read() == b""


def test_a_pipe_that_closes_while_it_writes_ends_it_quietly(
    bootstrap: str, topic: str, connection: Connection
) -> None:
    produce(connection, topic, *["x" * 1000] * 1000)
    with headrace_process(bootstrap, "consume", topic) as process:
        read_lines(process.stdout, 1)
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait(120) == 0
        assert process.stderr is not None
        assert process.stderr.read() == b""


@pytest.mark.parametrize("is_blocking", [True, False])
def test_a_slow_reader_gets_every_byte(
    bootstrap: str, topic: str, connection: Connection, *, is_blocking: bool
) -> None:
    """Python passes on what a pipe did not take, or raises, when stdout is not buffered."""
    lines = [f"{number:01000}" for number in range(1000)]
    produce(connection, topic, *lines)
    reading, writing = os.pipe()
    os.set_blocking(writing, is_blocking)

    with (
        open(reading, "rb") as pipe,
        headrace_process(bootstrap, "consume", topic, stdout=writing) as process,
    ):
        os.close(writing)
        found = pipe.read().decode().splitlines()
        code, _, told = end_of(process)

    assert (code, told) == (0, "")
    assert found == lines


def test_a_broker_that_goes_for_good_ends_a_bounded_read(tmp_path: Path) -> None:
    """Short patience only once the broker is gone: before that, a busy machine is no outage."""
    from confluent_kafka import TopicPartition

    with broker_process(tmp_path / "data") as broker:
        connection = Connection(broker.bootstrap, timeout_s=120)
        produce(connection, "t", *["x" * 1000] * 1000)
        quiet = {"group.id": "unused", "enable.auto.commit": False}
        consumer = connection.consumer({**quiet, "fetch.message.max.bytes": 10_000})
        consumer.assign([TopicPartition("t", 0, 0)])
        assert consumer.consume(1, 120)
        broker.kill()
    reader = Reader(
        consumer,
        Outage(connection),
        value_format(b"\n"),
        None,
        count=None,
        until_ms=None,
        is_following=False,
        timeout_s=0.5,
    )
    reader.open = {("t", 0): ENDLESS}

    with pytest.raises(CommandError, match="no broker answers any more"):
        read_on(reader)
    consumer.close()


def test_a_broker_that_comes_back_is_read_on(tmp_path: Path) -> None:
    with broker_process(tmp_path / "data") as broker:
        port, connection = broker.port, Connection(broker.bootstrap)
        produce(connection, "t", "before")
        words = ("consume", "t", "--follow", "--from", "oldest")
        with headrace_process(broker.bootstrap, *words) as process:
            assert read_lines(process.stdout, 1) == ["before"]
            broker.kill()
            read_until(process.stderr, "no broker answers")
            with broker_process(tmp_path / "data", port=port):
                produce(connection, "t", "after")
                assert read_lines(process.stdout, 1) == ["after"]
                process.send_signal(signal.SIGTERM)
                assert end_of(process)[0] == 143


@pytest.mark.parametrize(
    ("group", "way_out"),
    [
        (None, "--from oldest begins with what there is"),
        ("g", "'headrace groups reset g --topic {}:0 --to oldest' lets group g begin with"),
    ],
)
@pytest.mark.parametrize(
    ("offset", "reason"),
    [
        (2, "is no longer there: retention or a deletion took it, and the oldest is 4 now"),
        (50, "is not there: the partition ends at 10"),
    ],
)
def test_an_offset_that_goes_while_reading_is_told_with_the_way_out(
    connection: Connection, messages: str, group: str | None, way_out: str, offset: int, reason: str
) -> None:
    from confluent_kafka import TopicPartition

    connection.admin().delete_records({(messages, 0): 4})
    consumer = connection.consumer({"group.id": "unused", "auto.offset.reset": "error"})
    reader = Reader(
        consumer,
        Outage(connection),
        value_format(b"\n"),
        None,
        count=None,
        until_ms=None,
        is_following=True,
        timeout_s=120,
        group=group,
    )
    reader.open = {(messages, 0): ENDLESS}
    consumer.assign([TopicPartition(messages, 0, offset)])

    with pytest.raises(CommandError) as raised:
        read_on(reader)
    consumer.close()

    assert str(raised.value).startswith(f"offset {offset} of partition 0 of {messages} {reason}")
    assert way_out.format(messages) in str(raised.value)
