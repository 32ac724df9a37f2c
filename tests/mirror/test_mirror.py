"""Between two embedded brokers: what arrives, what is refused, what a second run does."""

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer
from tests.mirror.conftest import Bus, Mirroring, during, has_caught_up

from headrace.client.errors import PropertyError
from headrace.mirror.errors import MirrorError, MirrorRefusedError
from headrace.mirror.interface import FOLLOWING, MirrorProgress
from headrace.mirror.lock import locked
from headrace.mirror.state import STATE_TOPIC
from headrace.testing import RunningBroker, broker_process, running_broker


def test_everything_of_a_message_arrives_at_the_same_place(
    mirroring: Mirroring, topic: str
) -> None:
    source = mirroring.source
    source.create(topic, partitions=3)
    source.send(
        topic,
        [
            (0, b"key", b"value", 1_700_000_000_000),
            (0, None, b"no key", 1),
            (0, b"", b"empty key", -1),
            (1, b"tombstone", None, 5),
            (1, b"empty value", b"", 5),
            (1, None, None, 4),
            (2, b"h", b"v", 9, [("a", b"1"), ("a", None), ("a", b""), ("", b"x"), ("ü", b"\xff")]),
            (2, b"\x00\xff", "ünicode".encode(), 9),
            (2, b"large", bytes(256 * 1024), 10),
        ],
    )

    summary = mirroring.run(topics=topic)

    assert mirroring.target.records(topic) == source.records(topic)
    assert len(source.records(topic)) == 9
    assert [(each.topic, each.messages, each.verified) for each in summary.topics] == [
        (topic, 9, "checksums")
    ]


def test_a_topic_without_messages_and_its_configs_arrive(mirroring: Mirroring, topic: str) -> None:
    configs = {"retention.ms": "3600000", "max.message.bytes": "200000"}
    mirroring.source.create(topic, partitions=5, configs=configs)

    mirroring.run(topics=topic)

    partitions = mirroring.target.admin.list_topics(topic).topics[topic].partitions
    assert len(partitions) == 5
    assert mirroring.target.configs(topic) == configs


def test_while_it_is_copied_a_target_keeps_everything(mirroring: Mirroring, topic: str) -> None:
    """The messages are older than the topic's retention, and come all the same."""
    mirroring.source.create(topic, configs={"retention.ms": "-1"})
    mirroring.source.numbers(topic, 100)  # of 1970
    seen = list[dict[str, str]]()
    mirroring.told.on_progress = lambda _: seen.append(mirroring.target.configs(topic))

    mirroring.run(topics=topic)

    assert seen[0]["retention.ms"] == "-1"
    assert seen[0]["cleanup.policy"] == "delete"
    assert mirroring.target.configs(topic) == {"retention.ms": "-1"}
    assert len(mirroring.target.records(topic)) == 100


def test_times_stay_where_the_broker_sets_them(mirroring: Mirroring, topic: str) -> None:
    configs = {"message.timestamp.type": "LogAppendTime"}
    mirroring.source.create(topic, configs=configs)
    mirroring.source.numbers(topic, 10)

    mirroring.run(topics=topic)

    assert mirroring.target.records(topic) == mirroring.source.records(topic)
    assert mirroring.target.configs(topic) == configs


def test_a_log_that_starts_late_is_copied_from_its_start(mirroring: Mirroring, topic: str) -> None:
    from confluent_kafka import TopicPartition as Place

    source = mirroring.source
    source.create(topic)
    source.numbers(topic, 100)
    (future,) = source.admin.delete_records([Place(topic, 0, 40)]).values()
    future.result(120)
    for group, offset in {"below": 10, "first": 40, "inside": 55, "end": 100}.items():
        source.commit(f"{topic}-{group}", {(topic, 0): offset})

    mirroring.run(topics=topic)

    arrived = mirroring.target.records(topic)
    assert [each.offset for each in arrived] == list(range(60))
    assert [each.value for each in arrived] == [each.value for each in source.records(topic)]
    positions = {
        group: mirroring.target.committed(f"{topic}-{group}", topic)[0]
        for group in ("below", "first", "inside", "end")
    }
    assert positions == {"below": 0, "first": 0, "inside": 15, "end": 60}


def test_a_second_run_copies_what_came_since(mirroring: Mirroring, topic: str) -> None:
    mirroring.source.create(topic, partitions=2)
    mirroring.source.numbers(topic, 50, partitions=2)
    mirroring.run(topics=topic)
    mirroring.source.numbers(topic, 30, first=50, partitions=2)

    again = mirroring.run(topics=topic)
    idle = mirroring.run(topics=topic)

    assert (again.topics[0].messages, idle.topics[0].messages) == (30, 0)
    assert mirroring.target.records(topic) == mirroring.source.records(topic)


def test_a_group_goes_on_where_it_stopped(mirroring: Mirroring, topic: str) -> None:
    source, target = mirroring.source, mirroring.target
    source.create(topic, partitions=2)
    source.numbers(topic, 40, partitions=2)
    source.commit(topic, {(topic, 0): 7, (topic, 1): 20}, "a word")

    mirroring.run(topics=topic, groups=topic)

    places = target.places(topic, topic)
    assert {number: place.offset for number, place in places.items()} == {0: 7, 1: 20}
    assert {place.metadata.rstrip("\0") for place in places.values()} == {"a word"}
    consumer = Consumer({**target.config, "group.id": topic, "auto.offset.reset": "error"})
    consumer.subscribe([topic])
    seen = list[Any]()
    while len(seen) < 13:
        seen += [message for message in consumer.consume(13, 1) if message.error() is None]
    consumer.close()
    assert [(each.partition(), each.offset()) for each in seen] == [(0, at) for at in range(7, 20)]


def test_positions_move_forward_and_back_only_when_asked(mirroring: Mirroring, topic: str) -> None:
    mirroring.source.create(topic)
    mirroring.source.numbers(topic, 40)
    mirroring.source.commit(topic, {(topic, 0): 10})
    mirroring.run(topics=topic, groups=topic)
    mirroring.target.commit(topic, {(topic, 0): 30})
    mirroring.source.commit(topic, {(topic, 0): 20})

    mirroring.run(topics=topic, groups=topic)
    kept = mirroring.target.committed(topic, topic)
    mirroring.run(topics=topic, groups=topic, is_rewinding=True)

    assert kept == {0: 30}
    assert mirroring.target.committed(topic, topic) == {0: 20}


def test_a_group_with_members_at_the_target_is_left_alone(mirroring: Mirroring, topic: str) -> None:
    mirroring.source.create(topic)
    mirroring.source.numbers(topic, 40)
    mirroring.run(topics=topic, groups=None)
    mirroring.source.commit(topic, {(topic, 0): 20})
    member = Consumer({**mirroring.target.config, "group.id": topic, "enable.auto.commit": False})
    member.subscribe([topic])
    while not member.assignment():
        member.poll(0.1)

    mirroring.run(topics=topic, groups=topic)
    member.close()

    assert mirroring.target.committed(topic, topic) == {}
    assert f"group {topic} has members at the target" in " ".join(mirroring.told.notes)


def test_a_mirror_back_is_refused_and_writes_nothing(mirroring: Mirroring, topic: str) -> None:
    mirroring.source.create(topic)
    mirroring.source.numbers(topic, 5)
    mirroring.run(topics=topic)

    with pytest.raises(MirrorRefusedError, match=f"{topic} came from") as refused:
        mirroring.back().run(topics=topic)

    assert "loop" in str(refused.value)
    assert STATE_TOPIC not in mirroring.source.admin.list_topics(timeout=120).topics


def test_a_loop_over_a_third_cluster_is_refused(
    mirroring: Mirroring, topic: str, tmp_path: Path
) -> None:
    mirroring.source.create(topic)
    mirroring.source.numbers(topic, 5)
    mirroring.run(topics=topic)
    with running_broker(in_memory=True) as third:
        bus = Bus(third.bootstrap)
        Mirroring(mirroring.target, bus, tmp_path).run(topics=topic)

        with pytest.raises(MirrorRefusedError, match="loop"):
            Mirroring(bus, mirroring.source, tmp_path).run(topics=topic)

        bus.delete(topic)
        bus.create(topic)  # a topic of its own now
        with pytest.raises(MirrorRefusedError, match="no mirror has written"):
            Mirroring(bus, mirroring.source, tmp_path).run(topics=topic)


def test_a_cluster_is_not_mirrored_onto_itself(mirroring: Mirroring) -> None:
    with pytest.raises(MirrorRefusedError, match="the same cluster"):
        Mirroring(mirroring.source, mirroring.source, mirroring.state_dir).run()


def test_a_foreign_topic_with_messages_is_refused(mirroring: Mirroring, topic: str) -> None:
    for bus in (mirroring.source, mirroring.target):
        bus.create(topic)
        bus.numbers(topic, 3)

    with pytest.raises(MirrorRefusedError, match=f"topic {topic} at the target has messages"):
        mirroring.run(topics=topic)


def test_an_empty_topic_is_used_and_its_own_configs_stay(mirroring: Mirroring, topic: str) -> None:
    mirroring.source.create(topic, configs={"retention.ms": "1000000000000"})
    mirroring.source.numbers(topic, 3)
    mirroring.target.create(topic, configs={"retention.ms": "2000000000000"})

    mirroring.run(topics=topic)

    assert mirroring.target.configs(topic) == {"retention.ms": "2000000000000"}
    assert mirroring.target.records(topic) == mirroring.source.records(topic)


def test_other_partitions_are_refused(mirroring: Mirroring, topic: str) -> None:
    mirroring.source.create(topic, partitions=2)
    mirroring.target.create(topic, partitions=3)

    with pytest.raises(MirrorRefusedError, match="2 partitions at the source and 3"):
        mirroring.run(topics=topic)


def test_another_writer_between_two_runs_is_noticed(mirroring: Mirroring, topic: str) -> None:
    mirroring.source.create(topic)
    mirroring.source.numbers(topic, 5)
    mirroring.run(topics=topic)
    mirroring.target.numbers(topic, 1)

    with pytest.raises(MirrorError, match=f"{topic}-0: .* offset 6 .* instead of 5"):
        mirroring.run(topics=topic)


def test_a_position_that_is_left_at_the_target_is_reported_as_it_is(
    mirroring: Mirroring, topic: str
) -> None:
    mirroring.source.create(topic)
    mirroring.source.numbers(topic, 30)
    mirroring.source.commit(topic, {(topic, 0): 25})
    mirroring.run(topics=topic, groups=topic)
    mirroring.source.commit(topic, {(topic, 0): 10})

    (move,) = mirroring.run(topics=topic, groups=topic).groups

    assert (move.source, move.target) == (10, 25)
    assert any(
        "stands at 25" in note and "--rewind-groups" in note for note in mirroring.told.notes
    )


def test_another_writer_during_a_run_is_noticed(mirroring: Mirroring, topic: str) -> None:
    mirroring.source.create(topic)
    mirroring.source.numbers(topic, 5000)
    others = list[int]()

    def interfere(progress: MirrorProgress) -> None:
        if progress.messages and not others:
            others.append(1)
            mirroring.target.numbers(topic, 1)

    mirroring.told.on_progress = interfere

    with pytest.raises(MirrorError, match="somebody else wrote to the target"):
        mirroring.run(topics=topic)


def test_a_topic_belongs_to_the_mirror_of_its_name(mirroring: Mirroring, topic: str) -> None:
    mirroring.source.create(topic)
    mirroring.run(topics=topic, name="first")

    with pytest.raises(MirrorRefusedError, match="belongs to the mirror first"):
        mirroring.run(topics=topic, name="second")


def test_two_mirrors_of_a_name_do_not_run_at_once(mirroring: Mirroring, topic: str) -> None:
    mirroring.source.create(topic)
    work = mirroring.make(topics=topic)
    ids = [end.cluster_id() for end in (work._source, work._target)]

    with (
        locked(mirroring.state_dir, ids[0], ids[1], "mirror"),
        pytest.raises(MirrorError, match="runs already"),
    ):
        work.run()


def test_a_look_says_what_would_be_done_and_does_nothing(mirroring: Mirroring, topic: str) -> None:
    mirroring.source.create(topic, partitions=2, configs={"retention.ms": "1"})

    (outlook,) = mirroring.make(topics=topic).look()

    assert outlook[:4] == (topic, "create", 2, 0)
    assert topic not in mirroring.target.admin.list_topics(timeout=120).topics


def test_no_topic_is_an_error(mirroring: Mirroring) -> None:
    with pytest.raises(MirrorRefusedError, match="no topic at"):
        mirroring.run(topics="there-is-none")


def test_what_the_mirror_relies_on_wins_over_the_operators_properties(
    mirroring: Mirroring, topic: str
) -> None:
    mirroring.source.create(topic)
    mirroring.source.numbers(topic, 100)
    mirroring.properties = {
        "acks": "0",
        "auto.offset.reset": "latest",
        "enable.idempotence": "false",
        "enable.partition.eof": "false",
        "isolation.level": "read_uncommitted",
    }

    mirroring.run(topics=topic)

    assert mirroring.target.records(topic) == mirroring.source.records(topic)
    mirroring.properties = {"max.in.flight": "100"}
    with pytest.raises(PropertyError, match="must be set <= 5"):
        mirroring.run(topics=topic)


class Impatient(Mirroring):
    """Stops when it was looked at ten times since the target fell silent."""

    is_silent = False
    _looks = 0

    @property
    def is_stopped(self) -> bool:
        self._looks += self.is_silent
        return self._looks > 10

    @is_stopped.setter
    def is_stopped(self, _value: bool) -> None: ...


def test_a_stop_waits_for_nothing_from_a_silent_target(
    source_broker: RunningBroker, tmp_path: Path, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.mirror.session._STOP_S", 1e6)
    with broker_process(tmp_path / "target") as broker:
        mirroring = Impatient(Bus(source_broker.bootstrap), Bus(broker.bootstrap), tmp_path)
        mirroring.source.create(topic)
        mirroring.source.numbers(topic, 500)

        def silence() -> None:
            os.kill(broker.pid, signal.SIGSTOP)
            mirroring.is_silent = True
            mirroring.source.numbers(topic, 500, first=500)

        during(mirroring, (has_caught_up(mirroring, topic), silence))
        mirroring.run(topics=topic, is_following=True)

        assert any("did not take everything" in note for note in mirroring.told.notes)
        os.kill(broker.pid, signal.SIGCONT)
        later = Mirroring(mirroring.source, mirroring.target, tmp_path)
        later.run(topics=topic)
        assert later.target.records(topic) == later.source.records(topic)


def test_a_mirror_that_is_stopped_goes_on_later(mirroring: Mirroring, topic: str) -> None:
    mirroring.source.create(topic)
    mirroring.source.numbers(topic, 20_000)

    def stop(progress: MirrorProgress) -> None:
        mirroring.is_stopped = progress.messages > 100

    mirroring.told.on_progress = stop
    first = mirroring.run(topics=topic)
    mirroring.is_stopped, mirroring.told.on_progress = False, lambda _progress: None
    second = mirroring.run(topics=topic)

    assert not first.is_complete
    assert 0 < first.topics[0].messages < 20_000
    assert first.topics[0].messages + second.topics[0].messages == 20_000
    assert mirroring.target.records(topic) == mirroring.source.records(topic)


def test_a_target_that_restarts_makes_no_difference(
    mirroring: Mirroring, topic: str, target_broker: RunningBroker
) -> None:
    mirroring.source.create(topic, partitions=2)
    mirroring.source.numbers(topic, 20_000, partitions=2)
    restarts = list[int]()

    def restart(progress: MirrorProgress) -> None:
        if not restarts and progress.messages > 2000:
            restarts.append(progress.messages)
            target_broker.restart()

    mirroring.told.on_progress = restart

    summary = mirroring.run(topics=topic, groups=None)

    assert len(restarts) == 1
    assert (summary.topics[0].messages, summary.topics[0].total) == (20_000, 20_000)
    assert mirroring.target.records(topic) == mirroring.source.records(topic)


def test_a_following_mirror_takes_up_what_is_new(
    mirroring: Mirroring, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.mirror.mirror._NEWS_S", 0.1)
    monkeypatch.setattr("headrace.mirror.session._LEAST_GROUP_S", 0.1)
    source, target = mirroring.source, mirroring.target
    grown, new = f"{topic}-grown", f"{topic}-new"
    source.create(grown, configs={"retention.ms": "-1", "message.timestamp.type": "LogAppendTime"})
    source.numbers(grown, 10)
    follower = threading.Thread(
        target=mirroring.run,
        kwargs={"topics": f"{topic}.*", "is_following": True, "interval_s": 0.1},
    )
    follower.start()
    try:
        _wait(lambda: FOLLOWING in mirroring.told.phases)
        from confluent_kafka.cimpl import NewPartitions

        partitions: Any = NewPartitions(grown, 2)
        source.admin.create_partitions([partitions])[grown].result(120)
        source.create(new)
        source.numbers(new, 10)
        source.numbers(grown, 20, first=10, partitions=2)
        source.commit(topic, {(new, 0): 4})
        _wait(lambda: _has(target, new) and len(target.records(new)) == 10)
        _wait(lambda: len(target.records(grown)) == 30)
        _wait(lambda: target.committed(topic, new) == {0: 4})
        _wait(lambda: target.configs(grown).get("cleanup.policy") is None)
    finally:
        mirroring.is_stopped = True
        follower.join(120)

    assert target.records(grown) == source.records(grown)
    assert target.configs(grown)["message.timestamp.type"] == "CreateTime"
    mirroring.is_stopped = False
    mirroring.run(topics=f"{topic}.*")
    assert target.configs(grown) == source.configs(grown)


def _has(bus: Bus, topic: str) -> bool:
    return topic in bus.admin.list_topics(timeout=120).topics


def _wait(condition: Any, timeout_s: float = 120) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.05)
