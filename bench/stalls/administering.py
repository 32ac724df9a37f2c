"""Loads of names: topics by the thousand, all that can be asked of them, offsets of everybody."""

import time
from collections.abc import Iterable

from bench.errors import BenchError
from bench.stalls import frames
from bench.stalls.load import Attack
from bench.stalls.offenders import CulpritAccount, Offender, over_and_over, together
from bench.stalls.testbed import Testbed
from bench.topics import admin_of

_TOPIC = 2  # Kafka's number of that resource type
_OFFSETS = "__consumer_offsets-0"
_PARTITIONS_A_COMMIT = 1000
_COMMITS_IN_FLIGHT = 10


def nothing(testbed: Testbed) -> Attack:
    """No load at all: what the machine and the innocent client make on their own."""

    def attack(outcome: CulpritAccount) -> None:
        time.sleep(testbed.seconds(5))

    return attack


def delete_used_topics(testbed: Testbed) -> Attack:
    """500 partitions that hold 1 MB each, deleted by one request."""
    topics = [f"used-{number}" for number in range(testbed.count(50, 5))]
    testbed.create_topics(topics, 10)
    for topic in topics:
        testbed.write(topic, 10, value_bytes=1000, messages=250, requests=40)

    def attack(outcome: CulpritAccount) -> None:
        with Offender(testbed.port, outcome) as offender:
            offender.ask(frames.delete_topics(topics))
        began_at = time.monotonic()
        is_gone = testbed.await_files(lambda: testbed.bytes_of("used-*/*.log") == 0, 60)
        seconds = time.monotonic() - began_at
        outcome.facts["bytes_left"] = testbed.bytes_of("used-*/*.log")
        outcome.notes.append(f"files gone after {seconds:.1f} s" if is_gone else "files remain")

    return attack


def compaction(testbed: Testbed) -> Attack:
    """A million commits of 50,000 keys in one partition, compacted on demand."""
    testbed.find_coordinator()
    testbed.create_topic("committed", 1000)
    groups, times = 50, testbed.count(20, 4)
    commits = [
        frames.commit_offsets(f"group-{number}", {"committed": range(_PARTITIONS_A_COMMIT)})
        for number in range(groups)
    ]
    _commit_all(testbed, commits * times)

    def attack(outcome: CulpritAccount) -> None:
        before, began_at = testbed.bytes_of(f"{_OFFSETS}/*.log"), time.monotonic()
        with Offender(testbed.port, outcome) as offender:
            offender.ask(
                frames.alter_config(
                    _TOPIC, "__consumer_offsets", "min.cleanable.dirty.ratio", "0.01"
                )
            )
        testbed.await_files(lambda: testbed.bytes_of(f"{_OFFSETS}/*.log") < before / 2, 60)
        after, seconds = testbed.bytes_of(f"{_OFFSETS}/*.log"), time.monotonic() - began_at
        outcome.facts |= {"bytes_before": before, "bytes_after": after}
        outcome.notes.append(f"{before / 1e6:.0f} MB became {after / 1e6:.0f} in {seconds:.1f} s")

    return attack


def metadata_of_all(testbed: Testbed) -> Attack:
    """10,000 topics, all of them asked for by two connections and librdkafka, over and over."""
    testbed.create_topics([f"topic-{number}" for number in range(testbed.count(10_000, 200))])
    seconds = testbed.seconds(8)

    def attack(outcome: CulpritAccount) -> None:
        listed = [0]

        def list_topics() -> None:
            admin = admin_of(testbed.port)
            deadline = time.monotonic() + seconds
            while time.monotonic() < deadline:
                admin.metadata()
                listed[0] += 1

        def ask() -> None:
            question = [frames.metadata(None)]
            over_and_over(testbed.port, question, outcome, connections=2, seconds=seconds)

        together([ask, list_topics])
        outcome.notes.append(f"librdkafka listed them {listed[0]} times")

    return attack


def create_many(testbed: Testbed) -> Attack:
    """2,000 topics in one CreateTopics."""
    names = [f"made-{number}" for number in range(testbed.count(2000, 50))]

    def attack(outcome: CulpritAccount) -> None:
        with Offender(testbed.port, outcome) as offender:
            offender.ask(frames.create_topics(names, 1))

    return attack


def describe_all(testbed: Testbed) -> Attack:
    """The sizes and the configs of 10,000 partitions of 1,000 topics, over and over."""
    names = [f"described-{number}" for number in range(testbed.count(1000, 20))]
    testbed.create_topics(names, 10)
    resources = [
        {"resource_type": _TOPIC, "resource_name": name, "configuration_keys": None}
        for name in names
    ]
    questions = [
        frames.encode(frames.DESCRIBE_LOG_DIRS, 4, topics=None),
        frames.encode(
            frames.DESCRIBE_CONFIGS,
            4,
            resources=resources,
            include_synonyms=True,
            include_documentation=True,
        ),
    ]

    def attack(outcome: CulpritAccount) -> None:
        over_and_over(testbed.port, questions, outcome, connections=2, seconds=testbed.seconds(8))

    return attack


def offsets_of_all(testbed: Testbed) -> Attack:
    """All offsets of three groups with 10,000 each, and the list of 5,000 groups."""
    testbed.find_coordinator()
    topics = [f"offsets-{number}" for number in range(testbed.count(10, 2))]
    testbed.create_topics(topics, 1000)
    groups = [f"all-{number}" for number in range(3)]
    everywhere = range(_PARTITIONS_A_COMMIT)
    commits = [
        frames.commit_offsets(group, {topic: everywhere}) for group in groups for topic in topics
    ]
    commits += [
        frames.commit_offsets(f"small-{number}", {topics[0]: [0]})
        for number in range(testbed.count(5000, 100))
    ]
    _commit_all(testbed, commits)
    asked = [
        {"group_id": group, "member_id": None, "member_epoch": -1, "topics": None}
        for group in groups
    ]
    questions = [
        frames.encode(frames.OFFSET_FETCH, 9, groups=asked, require_stable=False),
        frames.encode(frames.LIST_GROUPS, 5, states_filter=(), types_filter=()),
    ]

    def attack(outcome: CulpritAccount) -> None:
        over_and_over(testbed.port, questions, outcome, connections=2, seconds=testbed.seconds(8))

    return attack


def _commit_all(testbed: Testbed, commits: Iterable[frames.Frame]) -> None:
    """Commit a few at a time; BenchError when one is refused."""
    wanted, outcome = list(commits), CulpritAccount()
    with Offender(testbed.port, outcome) as client:
        for start in range(0, len(wanted), _COMMITS_IN_FLIGHT):
            client.ask_all(wanted[start : start + _COMMITS_IN_FLIGHT])
            if start == 0:
                outcome.read_answers()
    if outcome.answered < len(wanted) or set(outcome.answers) - {"NONE"}:
        raise BenchError(f"{testbed.engine} refused commits: {outcome.sentence()}")
