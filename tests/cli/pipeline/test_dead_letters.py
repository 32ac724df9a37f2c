"""`headrace pipeline dead-letters`: listing and sending again, without Spark."""

import uuid

import pytest
from tests.cli.conftest import Answer, Run
from tests.pipelines.running.stage import committed

from headrace.cli.connection import Connection


class Pipeline:
    """A pipeline of its own name, its source topic and its dead letters."""

    def __init__(self, run: Run, connection: Connection, source: str) -> None:
        self.run, self.connection, self.source = run, connection, source
        self.name = f"p-{uuid.uuid4().hex}"
        self.topic = f"{self.name}.dead-letters"
        self.make(self.topic)

    def make(self, topic: str) -> None:
        assert self.run("topics", "create", topic, "--partitions", 1).code == 0
        while self.run("topics", "describe", topic).code:
            pass

    def make_anew(self, topic: str) -> None:
        """Delete a topic and make one of the same name."""
        assert self.run("topics", "delete", topic, "--yes").code == 0
        while self.run("topics", "describe", topic).code == 0:
            pass
        self.make(topic)

    def id_of(self, topic: str) -> str:
        return self.connection.admin().topic_ids([topic])[topic]

    def add(
        self,
        offset: int,
        value: bytes | None,
        reason: str = "not JSON",
        partition: int = 0,
        timestamp_ms: int | None = None,
        **more: str,
    ) -> None:
        ours = {
            "pipeline": self.name,
            "reason": reason,
            "topic": self.source,
            "partition": str(partition),
            "offset": str(offset),
            "timestamp": str(timestamp_ms or 1_700_000_000_000 + offset),
            **{name.replace("_", "-"): text for name, text in more.items()},
        }
        headers = [("own", b"\xff"), *((f"headrace.{key}", each) for key, each in ours.items())]
        producer = self.connection.producer()
        producer.produce(self.topic, value, b"key", headers=headers)
        assert producer.flush(120) == 0

    def __call__(self, *words: object) -> Answer:
        return self.run("pipeline", "dead-letters", self.name, *words)

    def arrived(self) -> list[object]:
        answer = self.run("consume", self.source, "--json")
        return answer.objects


@pytest.fixture
def pipeline(run: Run, connection: Connection, topic: str) -> Pipeline:
    return Pipeline(run, connection, topic)


def test_each_record_is_listed_once_with_its_reason(pipeline: Pipeline) -> None:
    pipeline.add(7, b"\xff{", "not UTF-8")
    pipeline.add(7, b"\xff{", "not UTF-8")
    pipeline.add(8, None)

    answer = pipeline("--json")

    assert answer.code == 0, answer.stderr
    first, second = answer.objects

    assert first == {
        "pipeline": pipeline.name,
        "reason": "not UTF-8",
        "cluster_id": None,
        "topic_id": None,
        "topic": pipeline.source,
        "partition": 0,
        "offset": 7,
        "timestamp": 1_700_000_000_007,
        "key": "key",
        "value_base64": "/3s=",
        "headers": [{"key": "own", "value_base64": "/w=="}],
        "cut": None,
        "letter": "0:0",
        "sent_again": False,
    }
    assert (second["offset"], second["value"], second["letter"]) == (8, None, "0:2")
    assert f"{pipeline.source}:0:7" in pipeline().stdout


def test_a_record_of_any_timestamp_is_listed(pipeline: Pipeline) -> None:
    for offset, timestamp_ms in enumerate((2**62, -5, -1)):
        pipeline.add(offset, b"x", timestamp_ms=timestamp_ms)

    answer = pipeline()

    assert (answer.code, answer.stderr) == (0, "")
    assert "@4611686018427387904" in answer.stdout
    assert "@-5" in answer.stdout


def test_letters_are_found_by_reason_place_and_count(pipeline: Pipeline) -> None:
    for offset in range(4):
        pipeline.add(offset, b"x", "field a is missing" if offset % 2 else "not JSON")

    def offsets(*words: object) -> list[int]:
        return [each["offset"] for each in pipeline("--json", *words).objects]

    assert offsets("--reason", "Field A") == [1, 3]
    assert offsets("--limit", 3) == [0, 1, 2]
    assert offsets("--since", 2) == [2, 3]
    assert offsets("--offset", "0:1", "--offset", "0:2") == [1, 2]


def test_the_summary_counts_by_reason(pipeline: Pipeline) -> None:
    for offset in range(3):
        pipeline.add(offset, b"x", "not JSON" if offset else "empty")

    rows = pipeline("--summary", "--json").objects

    assert [(row["count"], row["reason"]) for row in rows] == [(2, "not JSON"), (1, "empty")]
    assert pipeline("--summary").lines[1].split()[0] == "2"


def test_what_is_sent_again_is_the_record_as_it_was_and_goes_once(pipeline: Pipeline) -> None:
    pipeline.add(5, b"one", partition=2)
    pipeline.add(5, b"one", partition=2)
    pipeline.add(6, None, partition=1)

    answer = pipeline("--resubmit", "--yes")
    again = pipeline("--resubmit", "--yes")

    assert answer.lines == [f"sent 2 dead letters to {pipeline.source}"], answer.stderr
    assert again.lines == ["nothing to send: all of them were sent before, or none is meant"]
    arrived = {each["partition"]: each for each in pipeline.arrived()}  # type: ignore[index]
    assert {key: each["value"] for key, each in arrived.items()} == {2: "one", 1: None}
    assert arrived[2]["timestamp"] == 1_700_000_000_005
    assert arrived[2]["headers"] == [{"key": "own", "value_base64": "/w=="}]
    assert all(each["sent_again"] for each in pipeline("--json").objects)


def test_those_sent_out_of_turn_are_not_sent_with_the_rest(pipeline: Pipeline) -> None:
    for offset in range(3):
        pipeline.add(offset, b"%d" % offset)

    assert pipeline("--resubmit", "--yes", "--offset", "0:1").code == 0
    assert [each["sent_again"] for each in pipeline("--json").objects] == [False, True, False]
    assert pipeline("--resubmit", "--yes").code == 0

    assert sorted(each["value"] for each in pipeline.arrived()) == ["0", "1", "2"]  # type: ignore[index]
    assert pipeline("--resubmit", "--all", "--yes").lines == [
        f"sent 3 dead letters to {pipeline.source}"
    ]


def test_letters_of_a_topic_made_anew_are_not_hidden_behind_those_of_the_old(
    pipeline: Pipeline,
) -> None:
    pipeline.add(0, b"old", topic_id=pipeline.id_of(pipeline.source))
    assert pipeline("--resubmit", "--yes").code == 0
    pipeline.make_anew(pipeline.source)
    pipeline.add(0, b"new", topic_id=pipeline.id_of(pipeline.source))

    listed = pipeline("--json").objects
    answer = pipeline("--resubmit", "--yes")

    assert [(each["value"], each["sent_again"]) for each in listed] == [
        ("old", True),
        ("new", False),
    ]
    assert (answer.lines, answer.stderr) == ([f"sent 1 dead letter to {pipeline.source}"], "")
    assert [each["value"] for each in pipeline.arrived()] == ["new"]  # type: ignore[index]


def test_a_letter_for_a_topic_that_was_made_anew_meanwhile_is_sent_with_a_word(
    pipeline: Pipeline,
) -> None:
    pipeline.add(0, b"old", topic_id=pipeline.id_of(pipeline.source))
    pipeline.add(1, b"elsewhere", cluster_id="another")
    pipeline.make_anew(pipeline.source)

    answer = pipeline("--resubmit", "--yes")

    assert answer.code == 0
    assert answer.stderr.splitlines() == [
        f"headrace: 1 dead letter of topic {pipeline.source} came from another cluster than this "
        "one",
        f"headrace: 1 dead letter came from a topic {pipeline.source} that was deleted and made "
        "again since",
    ]


def test_letters_of_a_dead_letter_topic_made_anew_were_not_sent(pipeline: Pipeline) -> None:
    pipeline.add(0, b"first")
    assert pipeline("--resubmit", "--yes").code == 0
    group = f"{pipeline.name}.dead-letters"
    noted = committed(pipeline.connection.bus, group, pipeline.topic)
    pipeline.make_anew(pipeline.topic)
    pipeline.add(0, b"second")
    # As if the group had kept its position, which some brokers do.
    commit(pipeline.connection, group, pipeline.topic, noted[0], "topic the-old-one; ")

    listed = pipeline("--json").objects
    answer = pipeline("--resubmit", "--yes")

    assert [each["sent_again"] for each in listed] == [False]
    assert answer.lines == [f"sent 1 dead letter to {pipeline.source}"]
    assert [each["sent_again"] for each in pipeline("--json").objects] == [True]


def commit(connection: Connection, group: str, topic: str, offset: int, metadata: str) -> None:
    from confluent_kafka import TopicPartition

    consumer = connection.consumer({"group.id": group})
    place = TopicPartition(topic, 0, offset, metadata)
    consumer.commit(offsets=[place], asynchronous=False)
    consumer.close()


def test_what_was_sent_is_not_noted_in_a_group_that_a_properties_file_names(
    pipeline: Pipeline,
) -> None:
    theirs = f"theirs-{pipeline.name}"
    pipeline.add(0, b"{")

    answer = pipeline("--resubmit", "--yes", "-X", f"group.id={theirs}")

    assert answer.code == 0
    assert [each["sent_again"] for each in pipeline("--json").objects] == [True]
    groups = {each["group"] for each in pipeline.run("groups", "list", "--json").objects}
    assert f"{pipeline.name}.dead-letters" in groups
    assert theirs not in groups


def test_a_letter_that_was_cut_is_not_sent_and_the_record_is_named(
    pipeline: Pipeline, connection: Connection
) -> None:
    producer = connection.producer()
    producer.produce(pipeline.source, b"{" * 100, partition=0)
    assert producer.flush(120) == 0
    pipeline.add(0, b"{{{", cut="value cut at 3 of 100 bytes", value_size="100")
    pipeline.add(7, b"{{{", cut="value cut at 3 of 100 bytes", value_size="100")
    pipeline.add(1, b"whole")

    answer = pipeline("--resubmit", "--yes")
    gone = pipeline("--resubmit", "--yes", "--offset", "0:1")

    assert (answer.code, answer.lines) == (1, [f"sent 1 dead letter to {pipeline.source}"])
    assert answer.stderr.strip() == (
        "headrace: 2 dead letters not sent: cut when written, so not what the record was, such as "
        f"{pipeline.source}:0:0; the record itself is still there: headrace consume "
        f"{pipeline.source} --partition 0 --from 0 --count 1"
    )
    assert gone.stderr.strip().endswith("; the record itself is no longer on its topic")
    assert pipeline("--json").objects[0]["cut"] == "value cut at 3 of 100 bytes"


def test_they_may_be_sent_elsewhere(pipeline: Pipeline, run: Run) -> None:
    other = f"other-{uuid.uuid4().hex}"
    assert run("topics", "create", other, "--partitions", 1).code == 0
    pipeline.add(0, b"x", partition=2)

    answer = pipeline("--resubmit", "--to", other, "--yes", "--json")

    assert answer.objects == [{"topic": pipeline.topic, "sent": {other: 1}, "failed": 0}]


def test_nothing_is_sent_unasked_or_to_a_topic_that_is_gone(pipeline: Pipeline) -> None:
    pipeline.add(0, b"x")

    unasked = pipeline("--resubmit")
    gone = pipeline("--resubmit", "--yes", "--to", "nowhere")

    assert unasked.code == 2
    assert "Send 1 dead letter to" in unasked.stderr
    assert gone.code == 1
    assert "there is no topic nowhere" in gone.stderr
    assert pipeline.arrived() == []


def test_a_shared_topic_can_be_read_for_one_pipeline(pipeline: Pipeline, run: Run) -> None:
    pipeline.add(0, b"x")

    def count(*words: object) -> int:
        return len(run("pipeline", "dead-letters", *words, "--json").objects)

    assert count("--topic", pipeline.topic) == 1
    assert count("somebody", "--topic", pipeline.topic) == 0


def test_messages_of_others_in_the_topic_are_passed_over(
    pipeline: Pipeline, connection: Connection
) -> None:
    producer = connection.producer()
    producer.produce(pipeline.topic, b"no headers")
    assert producer.flush(120) == 0
    pipeline.add(0, b"x")

    assert len(pipeline("--json").objects) == 1
    assert pipeline("--resubmit", "--yes").lines == [f"sent 1 dead letter to {pipeline.source}"]


def test_a_pipeline_without_dead_letters_is_no_failure(run: Run) -> None:
    answer = run("pipeline", "dead-letters", "fresh")

    assert (answer.code, answer.lines) == (
        0,
        ["no dead letters: there is no topic fresh.dead-letters"],
    )


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "name a pipeline, or its dead-letter topic with --topic"),
        (("p", "--all"), "--all goes with --resubmit"),
        (("p", "--to", "t"), "--to goes with --resubmit"),
        (("p", "--summary", "--resubmit"), "do not go together"),
        (("p", "--offset", "x"), "--offset x: write PARTITION:OFFSET"),
        (("p", "--since", "x"), "'x' is no position"),
        (("p", "--since", "@99999999999999999999"), "times are in the years 1970 to 9999"),
    ],
)
def test_a_wrong_command_line_says_what_is_wrong(
    run: Run, words: tuple[str, ...], sentence: str
) -> None:
    answer = run("pipeline", "dead-letters", *words)

    assert answer.code == 2
    assert sentence in answer.stderr
