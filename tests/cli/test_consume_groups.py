import select
import signal
import uuid

import pytest
from tests.cli.conftest import Run
from tests.cli.processes import end_of, headrace_process, read_lines
from tests.cli.test_consume import produce

from headrace.cli.connection import Connection
from headrace.cli.group_facts import committed_offsets

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
        self._connection, self._group = connection, group
        self._admin = connection.admin()

    def __call__(self) -> dict[int, int]:
        offsets = committed_offsets(self._connection, self._admin, self._group)
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


def test_a_new_group_begins_at_the_latest_and_keeps_that_place(
    run: Run, messages: str, connection: Connection, name: str
) -> None:
    assert run("consume", messages, "--group", name).lines == []
    produce(connection, messages, "between")

    assert run("consume", messages, "--group", name).lines == ["between"]


def test_chosen_partitions_use_the_groups_offsets_without_joining_it(
    run: Run, messages: str, name: str, committed: Committed
) -> None:
    words = ("consume", messages, "--group", name, "--partition", "0,1", "--from", 5)

    assert len(run(*words).lines) == 5 + 15
    assert run(*words).lines == []
    assert committed() == {0: 10, 1: 20}


def test_a_groups_offset_that_is_out_of_range_is_told(
    run: Run, messages: str, connection: Connection, name: str
) -> None:
    from confluent_kafka import TopicPartition

    run("consume", messages, "--group", name, "--from", "oldest", "--count", 1)
    ends = {0: 10, 1: 20, 2: 30}
    gone = [TopicPartition(messages, partition, end) for partition, end in ends.items()]
    for future in connection.admin().delete_records(gone).values():
        future.result(120)

    answer = run("consume", messages, "--group", name)

    assert answer.code == 1
    assert "out of range" in answer.stderr


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
