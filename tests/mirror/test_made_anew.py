"""Topics and clusters that are others under the same name: between two runs, and during one.

What happens during a run happens in its listener, between two steps: the mirror stands still
meanwhile, and never sees a topic missing.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition as Place
from tests.mirror.conftest import (
    Bus,
    Mirroring,
    during,
    has_caught_up,
    is_following,
    make_anew,
    numbers,
)

from headrace.mirror.errors import MirrorError, MirrorIdentityError, MirrorRefusedError
from headrace.mirror.interface import VERIFYING
from headrace.mirror.state import STATE_TOPIC
from headrace.model import known_topic_id
from headrace.testing import running_broker


@pytest.fixture(autouse=True)
def _looks_only_when_it_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """No look now and then helps by chance."""
    monkeypatch.setattr("headrace.mirror.mirror._NEWS_S", 1e9)
    monkeypatch.setattr("headrace.mirror.session._LOOK_S", 1e9)
    monkeypatch.setattr("headrace.mirror.session._LEAST_GROUP_S", 0.1)
    monkeypatch.setattr("headrace.mirror.watch._AWAY_S", 0.3)


@pytest.fixture
def _frequent_looks(_looks_only_when_it_counts: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """For what brings nothing to be looked at."""
    monkeypatch.setattr("headrace.mirror.mirror._NEWS_S", 0.1)
    monkeypatch.setattr("headrace.mirror.session._LOOK_S", 0.1)


def checkpoints(bus: Bus, topic: str) -> list[dict[str, Any]]:
    """What the state topic has noted of a topic's places, in order."""
    return [
        json.loads(each.value or b"")
        for each in bus.records(STATE_TOPIC)
        if json.loads(each.key or b"")[0] == "checkpoint" and topic in json.loads(each.key or b"")
    ]


def topic_id(bus: Bus, topic: str) -> str:
    from confluent_kafka import TopicCollection

    described = bus.admin.describe_topics(TopicCollection([topic]))[topic].result(120)
    return known_topic_id(str(described.topic_id))


def test_a_following_mirror_never_goes_on_into_a_topic_made_anew(
    mirroring: Mirroring, topic: str
) -> None:
    """It has grown beyond the old one, so the next offset is there."""
    source, target = mirroring.source, mirroring.target
    source.create(topic)
    source.numbers(topic, 10)
    source.commit(topic, {(topic, 0): 3})
    old_id = topic_id(source, topic)

    def replace() -> None:
        make_anew(source, topic, 25)
        source.commit(topic, {(topic, 0): 20})

    during(mirroring, (has_caught_up(mirroring, topic), replace))
    with pytest.raises(MirrorIdentityError, match="deleted at the source and made anew") as refused:
        mirroring.run(topics=topic, groups=topic, is_following=True, interval_s=0.1)

    assert old_id in str(refused.value)
    assert topic_id(source, topic) in str(refused.value)
    assert numbers(target, topic) == list(range(10))
    assert max(each["source"] for each in checkpoints(target, topic)) == 10
    # Positions are brought over while records still come, so it may stand before 3; behind 3 it can
    # only have come by the new topic's 20.
    assert target.committed(topic, topic).get(0, 0) <= 3


def test_a_long_copy_takes_nothing_of_a_topic_made_anew(mirroring: Mirroring, topic: str) -> None:
    source, target = mirroring.source, mirroring.target
    source.create(topic)
    source.numbers(topic, 20_000)
    during(mirroring, (lambda at: at.messages > 500, lambda: make_anew(source, topic, 21_000)))

    with pytest.raises(MirrorIdentityError, match="deleted at the source and made anew"):
        mirroring.run(topics=topic, groups=None, interval_s=0.1)

    there = numbers(target, topic)
    assert there == list(range(len(there)))


@pytest.mark.parametrize("count", [0, 5])
def test_a_topic_made_anew_that_is_shorter_is_told_as_one(
    mirroring: Mirroring, topic: str, count: int
) -> None:
    """The offset to go on from is out of its range."""
    mirroring.source.create(topic)
    mirroring.source.numbers(topic, 10)
    during(
        mirroring,
        (has_caught_up(mirroring, topic), lambda: make_anew(mirroring.source, topic, count)),
    )

    with pytest.raises(MirrorIdentityError, match="deleted at the source and made anew"):
        mirroring.run(topics=topic, is_following=True, interval_s=0.1)


def test_a_source_made_anew_during_the_check_is_not_verified(
    mirroring: Mirroring, topic: str
) -> None:
    mirroring.source.create(topic)
    mirroring.source.numbers(topic, 10)
    during(
        mirroring,
        (lambda at: at.phase == VERIFYING, lambda: make_anew(mirroring.source, topic, 25)),
    )

    with pytest.raises(MirrorIdentityError, match="deleted at the source and made anew"):
        mirroring.run(topics=topic)

    assert all(each["verified"][0] == 0 for each in checkpoints(mirroring.target, topic))


def test_a_target_made_anew_with_as_many_records_is_not_written_on_as_the_copy(
    mirroring: Mirroring, topic: str
) -> None:
    """Offsets alone would not show it."""
    source, target = mirroring.source, mirroring.target
    source.create(topic)
    source.numbers(topic, 10)

    def replace() -> None:
        make_anew(target, topic, 10)
        source.numbers(topic, 5, first=10)

    during(mirroring, (has_caught_up(mirroring, topic), replace))
    with pytest.raises(MirrorIdentityError, match="deleted at the target and made anew"):
        mirroring.run(topics=topic, groups=None, is_following=True, interval_s=0.1)

    assert numbers(target, topic) == list(range(1_000_000, 1_000_010)), "nothing was written"
    assert max(each["target"] for each in checkpoints(target, topic)) == 10
    with pytest.raises(MirrorIdentityError, match="deleted at the target and made anew"):
        mirroring.run(topics=topic, is_anew=True)


def test_what_a_target_took_before_it_was_made_anew_is_not_noted(
    mirroring: Mirroring, topic: str
) -> None:
    source, target = mirroring.source, mirroring.target
    source.create(topic)
    source.numbers(topic, 10)

    def replace() -> None:
        while len(target.records(topic)) < 15:
            pass
        make_anew(target, topic, 15)

    during(
        mirroring,
        (has_caught_up(mirroring, topic), lambda: source.numbers(topic, 5, first=10)),
        (lambda at: at.messages == 15, replace),
    )
    with pytest.raises(MirrorIdentityError, match="deleted at the target and made anew"):
        mirroring.run(topics=topic, groups=None, is_following=True, interval_s=0.1)

    assert max(each["target"] for each in checkpoints(target, topic)) == 10


@pytest.mark.usefixtures("_frequent_looks")
def test_a_target_deleted_during_a_run_is_told(mirroring: Mirroring, topic: str) -> None:
    mirroring.source.create(topic)
    mirroring.source.numbers(topic, 10)
    during(mirroring, (has_caught_up(mirroring, topic), lambda: mirroring.target.delete(topic)))

    with pytest.raises(MirrorIdentityError, match=f"topic {topic} was .* the target"):
        mirroring.run(topics=topic, groups=None, is_following=True, interval_s=0.1)


def test_notes_that_were_deleted_during_a_run_end_it(
    mirroring: Mirroring, topic: str, tmp_path: Path
) -> None:
    mirroring.source.create(topic)
    mirroring.source.numbers(topic, 10)
    with running_broker(in_memory=True) as broker:
        alone = Mirroring(mirroring.source, Bus(broker.bootstrap), tmp_path)

        def replace() -> None:
            alone.target.delete(STATE_TOPIC)
            alone.target.create(STATE_TOPIC)
            alone.source.numbers(topic, 5, first=10)

        during(alone, (has_caught_up(alone, topic), replace))
        with pytest.raises(MirrorIdentityError, match="what was known of the copies is gone"):
            alone.run(topics=topic, is_following=True, interval_s=0.1)

        assert alone.target.records(STATE_TOPIC) == []
        with pytest.raises(MirrorRefusedError, match="no mirror has written"):
            alone.run(topics=topic)


@pytest.mark.usefixtures("_frequent_looks")
def test_a_topic_that_stays_away_is_told_and_the_others_go_on(
    mirroring: Mirroring, topic: str
) -> None:
    source, target = mirroring.source, mirroring.target
    away, there = f"{topic}-away", f"{topic}-there"
    for name in (away, there):
        source.create(name)
        source.numbers(name, 10)
    is_gone = f"topic {away} is not at the source any more; its copy is kept"

    told = mirroring.told.notes
    during(
        mirroring,
        (is_following, lambda: source.delete(away)),
        (lambda _: is_gone in told, lambda: source.numbers(there, 5, first=10)),
        (lambda _: len(target.records(there)) == 15, lambda: source.create(away)),
    )
    with pytest.raises(MirrorIdentityError, match=f"{away} was deleted at the source and made"):
        mirroring.run(topics=f"{topic}.*", groups=None, is_following=True, interval_s=0.1)

    assert numbers(target, there) == list(range(15))
    assert numbers(target, away) == list(range(10))


def test_another_cluster_at_the_same_address_is_refused_by_the_next_run(
    mirroring: Mirroring, topic: str, tmp_path: Path
) -> None:
    target = mirroring.target
    with running_broker(in_memory=True) as first:
        port, bus = first.port, Bus(first.bootstrap)
        bus.create(topic)
        bus.numbers(topic, 10)
        moving = Mirroring(bus, target, tmp_path)
        moving.run(topics=topic)
        first_id = bus.admin.list_topics(timeout=120).cluster_id
    with running_broker(in_memory=True, port=port) as second:
        bus = Bus(second.bootstrap)
        bus.create(topic)
        bus.numbers(topic, 25, first=1_000_000)
        second_id = bus.admin.list_topics(timeout=120).cluster_id

        with pytest.raises(MirrorRefusedError, match="the mirror of another cluster") as refused:
            Mirroring(bus, target, tmp_path).run(topics=topic, is_anew=True)

        assert first_id in str(refused.value)
        assert second_id in str(refused.value)
        assert numbers(target, topic) == list(range(10))
        target.delete(topic)
        Mirroring(bus, target, tmp_path).run(topics=topic)
        assert len(target.records(topic)) == 25


@pytest.mark.usefixtures("_frequent_looks")
def test_another_source_cluster_during_a_run_is_told(
    mirroring: Mirroring, topic: str, tmp_path: Path
) -> None:
    target = mirroring.target
    brokers = [running_broker(in_memory=True)]
    broker = brokers[0].__enter__()
    try:
        bus = Bus(broker.bootstrap)
        bus.create(topic)
        bus.numbers(topic, 10)
        moving = Mirroring(bus, target, tmp_path)

        def replace() -> None:
            brokers.pop().__exit__(None, None, None)
            brokers.append(running_broker(in_memory=True, port=broker.port))
            brokers[0].__enter__()
            other = Bus(broker.bootstrap)
            other.create(topic)
            other.numbers(topic, 25, first=1_000_000)

        during(moving, (has_caught_up(moving, topic), replace))
        with pytest.raises(MirrorIdentityError, match=r"another cluster|made anew"):
            moving.run(topics=topic, groups=None, is_following=True, interval_s=0.1)
    finally:
        brokers.pop().__exit__(None, None, None)

    assert numbers(target, topic) == list(range(10))


def test_a_source_topic_made_anew_is_copied_into_an_empty_target_when_asked_for(
    mirroring: Mirroring, topic: str
) -> None:
    source, target = mirroring.source, mirroring.target
    source.create(topic)
    source.numbers(topic, 10)
    source.commit(topic, {(topic, 0): 9})
    mirroring.run(topics=topic, groups=topic)
    make_anew(source, topic, 5)
    source.commit(topic, {(topic, 0): 2})

    with pytest.raises(MirrorIdentityError, match=f"delete topic {topic} at the target"):
        mirroring.run(topics=topic, groups=topic)
    with pytest.raises(MirrorIdentityError, match=f"delete topic {topic} at the target"):
        mirroring.run(topics=topic, groups=topic, is_anew=True)
    target.delete(topic)
    with pytest.raises(MirrorIdentityError, match=r"is not there any more .* --anew"):
        mirroring.run(topics=topic, groups=topic)
    summary = mirroring.run(topics=topic, groups=topic, is_anew=True)
    again = mirroring.run(topics=topic, groups=topic, is_anew=True)

    assert target.records(topic) == source.records(topic)
    assert (summary.topics[0].messages, summary.topics[0].verified) == (5, "checksums")
    assert again.topics[0].messages == 0, "what is as it was goes on"
    assert target.committed(topic, topic) == {0: 2}


def test_an_empty_target_made_anew_is_used_only_when_asked_for(
    mirroring: Mirroring, topic: str
) -> None:
    mirroring.source.create(topic)
    mirroring.source.numbers(topic, 10)
    mirroring.run(topics=topic)
    mirroring.target.delete(topic)
    mirroring.target.create(topic)

    with pytest.raises(MirrorIdentityError, match=r"made anew .* and is empty; run again with"):
        mirroring.run(topics=topic)
    mirroring.run(topics=topic, is_anew=True)

    assert mirroring.target.records(topic) == mirroring.source.records(topic)


def test_what_came_after_the_check_is_not_called_verified(mirroring: Mirroring, topic: str) -> None:
    source, target = mirroring.source, mirroring.target
    source.create(topic)
    source.numbers(topic, 10)

    def stop() -> None:
        mirroring.is_stopped = True

    during(
        mirroring,
        (has_caught_up(mirroring, topic), lambda: source.numbers(topic, 5, first=10)),
        (lambda _: len(target.records(topic)) == 15, stop),
    )
    followed = mirroring.run(topics=topic, groups=None, is_following=True, interval_s=0.1)
    mirroring.is_stopped = False
    mirroring.told.on_progress = lambda _progress: None
    checked = mirroring.run(topics=topic)

    assert (followed.topics[0].total, followed.topics[0].verified) == (15, "checksums of 10")
    assert (checked.topics[0].total, checked.topics[0].verified) == (15, "checksums")


def test_what_was_removed_before_it_was_read_again_is_never_called_verified(
    mirroring: Mirroring, topic: str
) -> None:
    source, target = mirroring.source, mirroring.target
    source.create(topic)
    source.numbers(topic, 10)
    mirroring.run(topics=topic, verify="counts")
    (future,) = target.admin.delete_records([Place(topic, 0, 4)]).values()
    future.result(120)

    words = [mirroring.run(topics=topic).topics[0].verified for _ in range(2)]

    assert words == ["counts", "counts"]


def test_notes_of_an_earlier_version_are_read_and_get_their_ids(
    mirroring: Mirroring, topic: str, tmp_path: Path
) -> None:
    mirroring.source.create(topic)
    mirroring.source.numbers(topic, 10)
    with running_broker(in_memory=True) as broker:
        target = Bus(broker.bootstrap)
        alone = Mirroring(mirroring.source, target, tmp_path)
        alone.run(topics=topic)
        for record in target.records(STATE_TOPIC):
            fields = json.loads(record.value or b"")
            for name in ("source_topic_id", "target_topic_id", "target_cluster_id"):
                fields.pop(name, None)
            fields["revision"] += 100
            if "verified" in fields:
                fields["verified"] = fields["verified"][:2]
            target.send(STATE_TOPIC, [(0, record.key, json.dumps(fields).encode())])
        mirroring.source.numbers(topic, 5, first=10)

        summary = alone.run(topics=topic)

        assert (summary.topics[0].messages, summary.topics[0].verified) == (5, "checksums")
        target.delete(topic)
        target.create(topic)
        with pytest.raises(MirrorIdentityError, match="deleted at the target and made anew"):
            alone.run(topics=topic)


def test_a_reading_of_a_log_that_became_shorter_ends(
    mirroring: Mirroring, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from headrace.mirror import reading
    from headrace.model import TopicPartition

    monkeypatch.setattr(reading, "_IDLE_S", 0.2)
    mirroring.source.create(topic)
    mirroring.source.numbers(topic, 5)
    end = mirroring.make(topics=topic)._source
    assert end.topics([topic])[topic].topic_id == topic_id(mirroring.source, topic)

    with pytest.raises(MirrorError, match="ends at 5, and ended at 9 before"):
        list(reading.read(end, {TopicPartition(topic, 0): range(9)}))
