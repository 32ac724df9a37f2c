from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.cli.conftest import Run

from headrace.cli.connection import Connection


@contextmanager
def member(connection: Connection, group: str, topic: str, protocol: str) -> Iterator[None]:
    """One consumer that has joined, read and committed; its client id is 'reader'."""
    config = {"group.id": group, "client.id": "reader", "auto.offset.reset": "earliest"}
    consumer = connection.consumer({**config, "group.protocol": protocol})
    consumer.subscribe([topic])
    try:
        while (message := consumer.poll(1)) is None or message.error():
            pass
        while len(consumer.assignment()) < 3:
            consumer.poll(0.1)
        consumer.commit(message, asynchronous=False)
        yield
    finally:
        consumer.close()


def offsets(run: Run, group: str) -> dict[int, int]:
    (facts,) = run("groups", "describe", group, "--json").objects
    return {each["partition"]: each["committed_offset"] for each in facts["partitions"]}


def test_a_group_without_members_is_listed_and_described(
    run: Run, group: str, messages: str
) -> None:
    listed = run("groups", "list", "--json").objects
    (facts,) = run("groups", "describe", group, "--json").objects

    assert {"group": group, "state": "Empty", "protocol": "classic"} in listed
    assert (facts["state"], facts["members"], facts["total_lag"]) == ("Empty", [], 20)
    assert [
        (
            each["topic"],
            each["partition"],
            each["committed_offset"],
            each["end_offset"],
            each["lag"],
        )
        for each in facts["partitions"]
    ] == [(messages, 0, 5, 10, 5), (messages, 1, 5, 20, 15)]


def test_groups_are_listed_by_state(run: Run, group: str) -> None:
    assert group in run("groups", "list", "--state", "empty").stdout
    assert group not in run("groups", "list", "--state", "stable").stdout
    wrong = run("groups", "list", "--state", "happy")
    assert wrong.code == 2
    assert "PreparingRebalance" in wrong.stderr


@pytest.mark.parametrize(("protocol", "assignor"), [("classic", "range"), ("consumer", "uniform")])
def test_a_member_is_shown_beside_what_it_reads(
    run: Run, connection: Connection, messages: str, protocol: str, assignor: str
) -> None:
    group = f"{protocol}-{messages}"
    with member(connection, group, messages, protocol):
        (facts,) = run("groups", "describe", group, "--json").objects
        table = run("groups", "describe", group).stdout
        listed = run("groups", "list", "--state", "stable", "--json").objects

    assert (facts["state"], facts["protocol"], facts["assignor"]) == ("Stable", protocol, assignor)
    assert len(facts["partitions"]) == 3
    assert {each["client_id"] for each in facts["partitions"]} == {"reader"}
    assert {each["host"] for each in facts["partitions"]} == {"127.0.0.1"}
    (shown,) = facts["members"]
    assert shown["partitions"] == [f"{messages}-{number}" for number in range(3)]
    assert shown["member_id"] in table
    assert {"group": group, "state": "Stable", "protocol": protocol} in listed


def test_a_member_without_partitions_is_shown(run: Run, connection: Connection, topic: str) -> None:
    group = f"idle-{topic}"
    config = {"group.id": group, "client.id": "idle", "session.timeout.ms": 10_000}
    consumers = [connection.consumer(config) for _ in range(4)]
    try:
        for consumer in consumers:
            consumer.subscribe([topic])
        while True:
            for consumer in consumers:
                consumer.poll(0.1)
            (facts,) = run("groups", "describe", group, "--json").objects
            if facts["state"] == "Stable" and len(facts["members"]) == 4:
                break
        table = run("groups", "describe", group).lines
    finally:
        for consumer in consumers:
            consumer.close()

    (idle,) = (each for each in facts["members"] if not each["partitions"])
    (line,) = (line for line in table if idle["member_id"] in line)
    assert line.split() == ["-"] * 5 + [idle["member_id"], "127.0.0.1", "idle"]


def test_a_group_that_is_not_there_is_told(run: Run) -> None:
    answer = run("groups", "describe", "absent")

    assert answer.code == 1
    assert "no group is called absent" in answer.stderr


@pytest.mark.parametrize(
    ("to", "wanted"),
    [
        ("oldest", {0: 0, 1: 0}),
        ("latest", {0: 10, 1: 20}),
        ("7", {0: 7, 1: 7}),
        ("15", {0: 10, 1: 15}),
        ("+3", {0: 8, 1: 8}),
        ("-10", {0: 0, 1: 0}),
        ("@4000", {0: 3, 1: 3}),
        ("@11500", {0: 10, 1: 11}),
        ("1970-01-01T00:00:06", {0: 5, 1: 5}),
        ("-1h", {0: 10, 1: 20}),
    ],
)
def test_offsets_move_to_where_they_are_told(
    run: Run, group: str, to: str, wanted: dict[int, int]
) -> None:
    answer = run("groups", "reset", group, "--to", to, "--yes", "--json")

    assert answer.code == 0
    assert {each["partition"]: each["old_offset"] for each in answer.objects} == {0: 5, 1: 5}
    assert {each["partition"]: each["new_offset"] for each in answer.objects} == wanted
    assert offsets(run, group) == wanted


def test_a_dry_run_shows_and_changes_nothing(run: Run, group: str, messages: str) -> None:
    answer = run("groups", "reset", group, "--to", "latest", "--dry-run")

    assert [line.split() for line in answer.lines] == [
        ["TOPIC", "PARTITION", "OLD", "NEW"],
        [messages, "0", "5", "10"],
        [messages, "1", "5", "20"],
    ]
    assert offsets(run, group) == {0: 5, 1: 5}


def test_only_the_named_partitions_move(run: Run, group: str, messages: str) -> None:
    run("groups", "reset", group, "--to", "latest", "--topic", f"{messages}:1,2", "--yes")

    assert offsets(run, group) == {0: 5, 1: 20, 2: 30}


def test_a_reset_wants_a_yes_where_nobody_can_be_asked(run: Run, group: str) -> None:
    answer = run("groups", "reset", group, "--to", "latest")

    assert answer.code == 2
    assert "--yes" in answer.stderr
    assert offsets(run, group) == {0: 5, 1: 5}


def test_a_group_with_members_is_neither_reset_nor_deleted(
    run: Run, connection: Connection, messages: str
) -> None:
    group = f"busy-{messages}"
    with member(connection, group, messages, "classic"):
        before = offsets(run, group)
        reset = run("groups", "reset", group, "--to", "latest", "--yes")
        deleted = run("groups", "delete", group, "--yes")
        after = offsets(run, group)

    assert reset.code == 1
    assert f"group {group} has 1 member (reader at 127.0.0.1); stop them first" in reset.stderr
    assert deleted.code == 1
    assert "the group has members" in deleted.stderr
    assert after == before


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["--to", "soon"], 2, "is no position"),
        (["--to", "@99999999999999999999"], 2, "times are in the years 1970 to 9999"),
        (["--to", "latest", "--topic", "absent"], 1, "no topic is called absent"),
        (["--to", "latest", "--topic", "{topic}:3"], 2, "has partitions 0 to 2"),
        (["--to", "latest", "--topic", "{topic}:x"], 2, "has partitions 0 to 2"),
        (["--to", "+1", "--topic", "{topic}:2"], 1, "has committed nothing in {topic}-2"),
    ],
)
def test_a_reset_that_makes_no_sense_is_refused(
    run: Run, group: str, messages: str, words: list[str], code: int, sentence: str
) -> None:
    answer = run("groups", "reset", group, *(word.format(topic=messages) for word in words))

    assert answer.code == code
    assert sentence.format(topic=messages) in answer.stderr


def test_a_group_that_has_nothing_to_move_is_told(run: Run) -> None:
    answer = run("groups", "reset", "absent", "--to", "oldest", "--yes")

    assert answer.code == 1
    assert "--topic" in answer.stderr


def test_a_deleted_topic_does_not_hide_the_others_of_the_group(
    run: Run, group: str, messages: str
) -> None:
    other = f"{messages}-other"
    run("topics", "create", other)
    while run("topics", "describe", other).code:
        pass
    assert run("groups", "reset", group, "--to", 0, "--topic", other, "--yes").code == 0

    run("topics", "delete", other, "--yes")

    (facts,) = run("groups", "describe", group, "--json").objects
    mine = [each for each in facts["partitions"] if each["topic"] == messages]
    assert [each["lag"] for each in mine] == [5, 15]


def test_groups_are_deleted_and_absent_ones_told(run: Run, group: str) -> None:
    answer = run("groups", "delete", "absent", group, "--yes", "--json")

    assert answer.code == 1
    assert answer.objects == [{"group": group, "deleted": True}]
    assert answer.stderr.startswith("headrace: absent: there is no such group")
    assert group not in run("groups", "list").stdout
