import select
import signal
import uuid
from pathlib import Path

import pytest
from tests.cli.conftest import Run
from tests.cli.consume.test_command import produce
from tests.cli.processes import end_of, headrace_process, read_lines

from headrace.cli.connection import Connection

PROTOCOLS = pytest.mark.parametrize("protocol", ["classic", "consumer"])


@pytest.fixture
def name() -> str:
    """A group nobody else uses."""
    return f"g-{uuid.uuid4().hex}"


@pytest.fixture
def committed(connection: Connection, name: str) -> "Committed":
    return Committed(connection, name)


class Committed:
    """The offsets of the group, asked for anew each time."""

    def __init__(self, connection: Connection, group: str) -> None:
        self._admin, self._group = connection.admin(), group

    def __call__(self) -> dict[int, int]:
        offsets = self._admin.group_offsets(self._group)
        return {partition: offset for (_topic, partition), offset in offsets.items()}


@PROTOCOLS
def test_a_group_goes_on_where_it_stopped(
    run: Run, messages: str, name: str, protocol: str, committed: Committed
) -> None:
    words = ("consume", messages, "--group", name, "-X", f"group.protocol={protocol}")

    first = run(*words, "--from", "oldest")
    second = run(*words, "--from", "oldest")

    assert (first.code, first.stderr, len(first.lines)) == (0, "", 60)
    assert (second.code, second.lines) == (0, [])
    assert committed() == {0: 10, 1: 20, 2: 30}


def test_a_group_that_a_properties_file_names_is_left_alone(
    run: Run, messages: str, name: str, committed: Committed, tmp_path: Path
) -> None:
    # Apache Kafka's own config/consumer.properties names one.
    theirs = f"theirs-{name}"
    file = tmp_path / "consumer.properties"
    file.write_text(f"group.id={theirs}\nenable.auto.commit=true\nauto.offset.reset=latest\n")

    alone = run("consume", messages, "--client-config", file)
    grouped = run("consume", messages, "--group", name, "--client-config", file)

    assert [len(alone.lines), len(grouped.lines)] == [60, 60]
    assert committed() == {0: 10, 1: 20, 2: 30}
    assert theirs not in [each["group"] for each in run("groups", "list", "--json").objects]


def test_only_what_was_printed_is_committed(
    run: Run, topic: str, connection: Connection, name: str, committed: Committed
) -> None:
    produce(connection, topic, *map(str, range(10)))
    words = ("consume", topic, "--group", name, "--from", "oldest")

    assert run(*words, "--count", 4).lines == ["0", "1", "2", "3"]
    assert committed()[0] == 4
    assert run(*words).lines == ["4", "5", "6", "7", "8", "9"]


def test_records_that_are_not_wanted_are_passed_over_for_good(
    run: Run, topic: str, connection: Connection, name: str, committed: Committed
) -> None:
    produce(connection, topic, "a", "b", "c")

    answer = run("consume", topic, "--group", name, "--from", "oldest", "--grep", "b")

    assert answer.lines == ["b"]
    assert committed()[0] == 3


def test_a_new_group_begins_at_the_oldest_and_goes_on_from_there(
    run: Run, messages: str, connection: Connection, name: str
) -> None:
    assert len(run("consume", messages, "--group", name).lines) == 60
    produce(connection, messages, "between")

    assert run("consume", messages, "--group", name).lines == ["between"]


def test_a_group_with_nothing_left_to_read_says_so_and_how_to_begin_anew(
    run: Run, messages: str, name: str
) -> None:
    run("consume", messages, "--group", name)

    answer = run("consume", messages, "--group", name)

    assert answer.code == 0
    assert answer.stdout == ""
    assert answer.stderr == (
        f"headrace: nothing printed: group {name} has no more to read here; "
        f"'headrace groups reset {name} --topic {messages} --to oldest' lets it begin anew\n"
    )


def test_a_new_group_that_follows_begins_at_the_latest_and_keeps_that_place(
    run: Run, messages: str, bootstrap: str, connection: Connection, name: str, committed: Committed
) -> None:
    with headrace_process(bootstrap, "consume", messages, "--group", name, "--follow") as process:
        while committed() != {0: 10, 1: 20, 2: 30}:
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        code, stdout, stderr = end_of(process)
    produce(connection, messages, "between")

    assert (code, stdout) == (130, "")
    reset = f"headrace groups reset {name} --topic {messages} --to oldest"
    assert stderr.endswith(f"nothing came; '{reset}' lets it begin anew\n")
    assert run("consume", messages, "--group", name).lines == ["between"]
    run(*reset.split()[1:], "--yes")
    assert len(run("consume", messages, "--group", name).lines) == 61


def test_chosen_partitions_use_the_groups_offsets_without_joining_it(
    run: Run, messages: str, name: str, committed: Committed
) -> None:
    words = ("consume", messages, "--group", name, "--partition", "0,1", "--from", 5)

    assert len(run(*words).lines) == 5 + 15
    assert run(*words).lines == []
    assert committed() == {0: 10, 1: 20}


# As a member of the group with each protocol, and without joining it.
WAYS = pytest.mark.parametrize(
    "way",
    [["-X", "group.protocol=classic"], ["-X", "group.protocol=consumer"], ["--partition", "0,1,2"]],
    ids=["classic", "consumer", "partition"],
)


@WAYS
def test_a_group_whose_next_record_was_deleted_is_told_and_the_way_out_works(
    run: Run, messages: str, connection: Connection, name: str, way: list[str]
) -> None:
    run("groups", "reset", name, "--topic", messages, "--to", 2, "--yes")
    connection.admin().delete_records({(messages, 0): 1, (messages, 1): 15})

    answer = run("consume", messages, "--group", name, *way)

    reset = f"headrace groups reset {name} --topic {messages}:1 --to oldest"
    assert (answer.code, answer.stdout) == (1, "")
    assert answer.stderr == (
        f"headrace: group {name} cannot go on: offset 2 of partition 1 of {messages} is no longer "
        "there: retention or a deletion took it, and the oldest is 15 now; "
        f"'{reset}' lets it begin with what there is\n"
    )
    assert run(*reset.split()[1:], "--yes").code == 0
    assert len(run("consume", messages, "--group", name, *way).lines) == 8 + 5 + 28


@WAYS
def test_a_group_that_stands_beyond_the_end_is_told_and_the_way_out_works(
    run: Run, topic: str, connection: Connection, name: str, way: list[str]
) -> None:
    from confluent_kafka import Consumer, TopicPartition

    produce(connection, topic, "a", "b")
    # As when the topic had more and was made again under its name.
    consumer = Consumer({**connection.config(), "group.id": name})
    consumer.commit(offsets=[TopicPartition(topic, 0, 50)], asynchronous=False)
    consumer.close()

    answer = run("consume", topic, "--group", name, *way)

    reset = f"headrace groups reset {name} --topic {topic}:0 --to oldest"
    assert (answer.code, answer.stdout) == (1, "")
    assert answer.stderr == (
        f"headrace: group {name} cannot go on: offset 50 of partition 0 of {topic} is not there: "
        "the partition ends at 2, as when a topic was made again under its name; "
        f"'{reset}' lets it begin with what there is\n"
    )
    assert run(*reset.split()[1:], "--yes").code == 0
    assert run("consume", topic, "--group", name, *way).lines == ["a", "b"]


@WAYS
def test_a_from_that_does_not_apply_is_told_and_not_checked(
    run: Run, messages: str, name: str, way: list[str]
) -> None:
    run("groups", "reset", name, "--topic", messages, "--to", 6, "--yes")

    answer = run("consume", messages, "--group", name, *way, "--from", 999)

    assert (answer.code, len(answer.lines)) == (0, 4 + 14 + 24)
    assert answer.stderr == (
        f"headrace: --from does not apply where group {name} has a committed offset: it goes on "
        f"from there; 'headrace groups reset {name} --topic {messages} --to oldest' moves it\n"
    )


@WAYS
def test_a_from_that_a_new_group_cannot_begin_at_is_an_error(
    run: Run, messages: str, name: str, way: list[str]
) -> None:
    answer = run("consume", messages, "--group", name, *way, "--from", 999)

    assert (answer.code, answer.stdout) == (1, "")
    assert "--from 999 is out of range: partition 0" in answer.stderr


def test_without_a_group_nothing_is_committed(run: Run, messages: str) -> None:
    before = run("groups", "list", "--json").stdout
    run("consume", messages)

    assert run("groups", "list", "--json").stdout == before


@PROTOCOLS
def test_ctrl_c_commits_what_was_printed(
    bootstrap: str,
    topic: str,
    connection: Connection,
    name: str,
    protocol: str,
    committed: Committed,
) -> None:
    produce(connection, topic, "a", "b", "c")
    words = ("consume", topic, "--group", name, "--follow", "--from", "oldest")
    with headrace_process(bootstrap, *words, "-X", f"group.protocol={protocol}") as process:
        assert read_lines(process.stdout, 3) == ["a", "b", "c"]
        process.send_signal(signal.SIGINT)
        assert end_of(process) == (130, "", "")

    assert committed()[0] == 3


def test_what_was_printed_is_committed_every_few_seconds(
    bootstrap: str, topic: str, connection: Connection, name: str, committed: Committed
) -> None:
    produce(connection, topic, "a")
    words = ("consume", topic, "--group", name, "--follow", "--from", "oldest")
    with headrace_process(bootstrap, *words) as process:
        read_lines(process.stdout, 1)
        while committed().get(0) != 1:
            assert process.poll() is None


def test_what_nobody_read_from_the_pipe_is_not_committed(
    bootstrap: str, topic: str, connection: Connection, name: str, committed: Committed
) -> None:
    produce(connection, topic, *["x" * 999] * 3000)
    words = ("consume", topic, "--group", name, "--from", "oldest")
    with headrace_process(bootstrap, *words) as process:
        read_lines(process.stdout, 1)
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait(120) == 0

    pipe_holds = 64 * 1024 // 1000
    assert committed()[0] <= 1 + pipe_holds


@PROTOCOLS
def test_members_share_the_partitions_and_lose_nothing_when_one_goes(
    bootstrap: str, topic: str, connection: Connection, name: str, protocol: str
) -> None:
    words = ("consume", topic, "--group", name, "--follow", "--from", "oldest")
    words += ("-X", f"group.protocol={protocol}", "--format", r"%p %s\n")
    sent, seen = set[str](), list[str]()

    def send(value: str) -> None:
        for partition in range(3):
            produce(connection, topic, value, partition=partition)
            sent.add(f"{partition} {value}")

    with (
        headrace_process(bootstrap, *words) as first,
        headrace_process(bootstrap, *words) as second,
    ):
        for process in (first, second):
            # Until each has printed something, both have not got their share.
            while not select.select([process.stdout], [], [], 0.2)[0]:
                assert first.poll() is None
                assert second.poll() is None
                send(f"{len(sent)}")
        first.send_signal(signal.SIGINT)
        code, out, _ = end_of(first)
        seen += out.splitlines()
        assert code == 130
        send("last")
        while not {line for line in sent if line.endswith("last")} <= set(seen):
            seen += read_lines(second.stdout, 1)
        second.send_signal(signal.SIGINT)
        code, out, _ = end_of(second)
        seen += out.splitlines()

    assert code == 130
    assert set(seen) == sent
