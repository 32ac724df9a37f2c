import uuid

from tests.cli.conftest import Run


def test_a_topic_is_created_listed_described_and_deleted(run: Run) -> None:
    name = f"t-{uuid.uuid4().hex}"

    assert run("topics", "create", name, "--partitions", 2).stdout == f"created topic {name}\n"
    while run("topics", "describe", name).code:
        pass  # until the broker has heard of it from the controller
    (listed,) = (each for each in run("topics", "list", "--json").objects if each["topic"] == name)
    assert listed["partitions"] == 2
    assert listed["messages"] == 0
    assert listed["size_bytes"] == 0
    assert run("topics", "delete", name, "--yes").stdout == f"deleted topic {name}\n"
    while name in run("topics", "list").stdout:
        pass  # as above


def test_a_topic_that_exists_is_an_error_unless_told(run: Run, topic: str) -> None:
    again = run("topics", "create", topic)
    allowed = run("topics", "create", topic, "--if-not-exists", "--json")

    assert (again.code, again.stderr) == (1, f"headrace: Topic '{topic}' already exists.\n")
    assert (allowed.code, allowed.objects) == (0, [{"topic": topic, "created": False}])


def test_a_topic_gets_the_configs_it_was_created_with(run: Run) -> None:
    name = f"t-{uuid.uuid4().hex}"

    run("topics", "create", name, "--config", "retention.ms=1000", "--config", "segment.ms=2000")

    while not (answer := run("topics", "describe", name, "--json")).objects:
        pass
    assert answer.objects[0]["configs"] == {"retention.ms": "1000", "segment.ms": "2000"}


def test_a_name_kafka_refuses_is_told_in_kafkas_words(run: Run) -> None:
    answer = run("topics", "create", "a b")

    assert answer.code == 1
    assert answer.stderr.startswith("headrace: Topic name is invalid: 'a b' contains")


def test_messages_and_bytes_are_counted(run: Run, messages: str) -> None:
    lines = [line.split() for line in run("topics", "list").lines]
    (described,) = run("topics", "describe", messages, "--json").objects

    assert lines[0] == ["TOPIC", "PARTITIONS", "REPLICAS", "MESSAGES", "SIZE"]
    (mine,) = (line for line in lines if line[0] == messages)
    assert mine[1:4] == ["3", "1", "60"]
    assert [each["end_offset"] for each in described["partitions"]] == [10, 20, 30]
    assert [each["oldest_offset"] for each in described["partitions"]] == [0, 0, 0]
    assert all(each["size_bytes"] > 100 for each in described["partitions"])
    assert all(each["isr"] == each["replicas"] == [1] for each in described["partitions"])


def test_internal_topics_are_listed_only_when_asked_for(run: Run, group: str) -> None:
    assert "__consumer_offsets" not in run("topics", "list").stdout
    assert "__consumer_offsets" in run("topics", "list", "--internal").stdout


def test_a_topic_that_is_not_there_does_not_hide_the_others(run: Run, topic: str) -> None:
    answer = run("topics", "describe", "absent", topic)

    assert answer.code == 1
    assert answer.lines[0] == topic
    assert "no topic is called absent" in answer.stderr


def test_a_topic_grows_and_its_configs_change(run: Run, topic: str) -> None:
    answer = run(
        "topics", "alter", topic, "--partitions", 5, "--config", "retention.ms=1", "--json"
    )
    assert answer.objects == [
        {"topic": topic, "partitions": 5, "configs": {"retention.ms": "1"}},
    ]
    while len((facts := run("topics", "describe", topic, "--json").objects[0])["partitions"]) < 5:
        pass
    while facts["configs"] != {"retention.ms": "1"}:
        (facts,) = run("topics", "describe", topic, "--json").objects

    assert run("topics", "alter", topic, "--delete-config", "retention.ms").code == 0
    while facts["configs"]:
        (facts,) = run("topics", "describe", topic, "--json").objects


def test_a_topic_cannot_shrink(run: Run, topic: str) -> None:
    answer = run("topics", "alter", topic, "--partitions", 1)

    assert answer.code == 1
    assert "would not be an increase" in answer.stderr


def test_altering_nothing_is_wrong_usage(run: Run, topic: str) -> None:
    answer = run("topics", "alter", topic)

    assert answer.code == 2
    assert "--partitions" in answer.stderr


def test_an_unknown_config_is_named(run: Run, topic: str) -> None:
    answer = run("topics", "alter", topic, "--config", "no.such=1")

    assert answer.code == 1
    assert "no.such" in answer.stderr


def test_deleting_wants_a_yes_where_nobody_can_be_asked(run: Run, topic: str) -> None:
    answer = run("topics", "delete", topic)

    assert answer.code == 2
    assert "--yes" in answer.stderr
    assert topic in run("topics", "list").stdout


def test_deleting_goes_on_after_a_topic_that_is_not_there(run: Run, topic: str) -> None:
    answer = run("topics", "delete", "absent", topic, "--yes", "--json")

    assert answer.code == 1
    assert answer.objects == [{"topic": topic, "deleted": True}]
    assert answer.stderr.startswith("headrace: absent: there is no such topic")
