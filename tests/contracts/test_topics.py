"""Topics: made, grown and deleted by name; a bad wish is refused with its reason."""

from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import NewPartitions, NewTopic
from tests.contracts.bus import PATIENCE_S, Bus, numbered, values, wait_for
from tests.contracts.engines import running_engine


def refusal(bus: Bus, *topics: NewTopic) -> int:
    with pytest.raises(KafkaException) as refused:
        bus.done(bus.admin.create_topics(list(topics)))
    return int(refused.value.args[0].code())


def test_a_topic_has_the_partitions_it_was_made_with(bus: Bus) -> None:
    topic = bus.new_topic(5)

    assert bus.partitions_of(topic) == 5
    for partition in range(5):
        bus.send(topic, [str(partition)], partition=partition)
        assert values(bus.read(topic, partition)) == [str(partition).encode()]


def test_a_topic_made_without_a_factor_is_on_every_broker_of_up_to_three(
    bus: Bus, topic: str
) -> None:
    found = bus.admin.list_topics(topic, timeout=PATIENCE_S).topics[topic].partitions[0]

    assert len(found.replicas) == min(3, bus.engine.brokers)
    assert found.leader in found.replicas


def test_a_topic_is_made_once(bus: Bus, topic: str) -> None:
    assert refusal(bus, NewTopic(topic, 1)) == KafkaError.TOPIC_ALREADY_EXISTS


@pytest.mark.parametrize("name", ["with space", "a/b", "ümlaut", ".", "..", "x" * 250])
def test_a_name_that_cannot_be_is_refused(bus: Bus, name: str) -> None:
    assert refusal(bus, NewTopic(name, 1)) == KafkaError.TOPIC_EXCEPTION


@pytest.mark.parametrize("name", ["a.b_c-D9", "x" * 249])
def test_letters_digits_dots_dashes_and_underscores_make_a_name(
    bus: Bus, name: str, topic: str
) -> None:
    name = (topic + name)[-len(name) :]

    assert bus.new_topic(1, name=name) == name


def test_names_that_differ_in_a_dot_and_an_underscore_only_are_refused(
    bus: Bus, topic: str
) -> None:
    bus.new_topic(1, name=f"{topic}.a_b")

    assert refusal(bus, NewTopic(f"{topic}_a.b", 1)) == KafkaError.TOPIC_EXCEPTION


@pytest.mark.parametrize(
    ("wish", "code"),
    [
        ({"num_partitions": 0}, KafkaError.INVALID_PARTITIONS),
        ({"num_partitions": 1, "replication_factor": 9}, KafkaError.INVALID_REPLICATION_FACTOR),
        ({"num_partitions": 1, "config": {"no.such": "1"}}, KafkaError.INVALID_CONFIG),
        ({"num_partitions": 1, "config": {"retention.ms": "soon"}}, KafkaError.INVALID_CONFIG),
        ({"num_partitions": 1, "config": {"segment.bytes": "1000"}}, KafkaError.INVALID_CONFIG),
    ],
    ids=["no partition", "too many replicas", "unknown config", "no number", "too small"],
)
def test_a_wish_that_makes_no_sense_is_refused(
    bus: Bus, topic: str, wish: dict[str, object], code: int
) -> None:
    assert refusal(bus, NewTopic(f"{topic}-new", **wish)) == code
    assert bus.partitions_of(f"{topic}-new") == 0


def test_a_trial_run_makes_nothing(bus: Bus, topic: str) -> None:
    bus.done(bus.admin.create_topics([NewTopic(f"{topic}-new", 1)], validate_only=True))

    assert bus.partitions_of(f"{topic}-new") == 0


def test_a_topic_grows_and_keeps_what_it_has(bus: Bus, topic: str) -> None:
    bus.send(topic, numbered(10), partition=0)

    bus.done(bus.admin.create_partitions([NewPartitions(topic, 3)]))
    bus.wait_until_served(topic, 3)
    bus.send(topic, [b"new"], partition=2)

    assert values(bus.read(topic, 0)) == numbered(10)
    assert values(bus.read(topic, 2)) == [b"new"]


@pytest.mark.parametrize("count", [1, 2])
def test_a_topic_does_not_shrink(bus: Bus, count: int) -> None:
    topic = bus.new_topic(2)

    with pytest.raises(KafkaException) as refused:
        bus.done(bus.admin.create_partitions([NewPartitions(topic, count)]))

    assert refused.value.args[0].code() == KafkaError.INVALID_PARTITIONS


def test_readers_of_a_topic_find_its_new_partitions(bus: Bus, topic: str, group: str) -> None:
    with bus.consumer(group, topic_metadata_refresh_interval_ms=100) as member:
        member.subscribe([topic])
        wait_for(lambda: member.poll(0.05) or len(member.assignment()) == 1)

        bus.done(bus.admin.create_partitions([NewPartitions(topic, 3)]))

        wait_for(lambda: member.poll(0.05) or len(member.assignment()) == 3)


def test_a_topic_that_is_not_there_cannot_be_deleted_or_grown(bus: Bus, topic: str) -> None:
    for futures in (
        bus.admin.delete_topics([f"{topic}-none"]),
        bus.admin.create_partitions([NewPartitions(f"{topic}-none", 3)]),
    ):
        with pytest.raises(KafkaException) as refused:
            bus.done(futures)
        assert refused.value.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_every_topic_has_an_id_that_a_new_one_of_its_name_does_not_get(bus: Bus) -> None:
    topic = bus.new_topic()
    before = bus.topic_id(topic)

    bus.delete_topic(topic)
    bus.new_topic(name=topic)

    assert bus.topic_id(topic) != before


def test_a_topic_is_made_when_it_is_first_written_to(bus: Bus, topic: str) -> None:
    bus.send(f"{topic}-new", [b"first"])

    assert values(bus.read(f"{topic}-new")) == [b"first"]


def test_a_topic_is_not_made_by_a_reader_who_does_not_allow_it(bus: Bus, topic: str) -> None:
    with bus.consumer(allow_auto_create_topics=False) as reader:
        reader.subscribe([f"{topic}-none"])
        refused = wait_for(lambda: reader.poll(0.1))

    assert refused.error().code() == KafkaError.UNKNOWN_TOPIC_OR_PART
    assert f"{topic}-none" not in bus.admin.list_topics(timeout=PATIENCE_S).topics


@pytest.mark.slow
def test_a_topic_is_not_made_by_its_first_message_where_the_bus_is_told_so(
    engine_name: str, tmp_path: Path
) -> None:
    """An engine of its own, for it is told so when it starts."""
    with running_engine(engine_name, tmp_path, auto_create_topics_enable="false") as engine:
        bus = Bus(engine)
        with pytest.raises(KafkaException) as refused:
            bus.send("new", [b"v"], config={"topic_metadata_propagation_max_ms": 0})

        assert refused.value.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART
        assert bus.partitions_of("new") == 0
