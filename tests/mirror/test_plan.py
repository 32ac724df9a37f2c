import re

import pytest

from headrace.mirror.endpoint import MirroredTopic
from headrace.mirror.errors import MirrorRefusedError
from headrace.mirror.plan import (
    RESUME,
    chain_at,
    copying_configs,
    final_configs,
    plan_topic,
    refuse_loops,
    select,
)
from headrace.mirror.state import COPYING, DONE, FOLLOWING, STATE_TOPIC, TopicNote

SOURCE = MirroredTopic("orders", "source-topic", 3, 1, {})
TARGET = MirroredTopic("orders", "target-topic", 3, 1, {})
NOTE = TopicNote("mirror", "source-topic", "target-topic", ("A",), COPYING, {})


def test_internal_topics_and_the_state_are_never_mirrored() -> None:
    names = ["orders", "__consumer_offsets", STATE_TOPIC, "orders-eu"]

    assert select(names, re.compile(".*")) == ["orders", "orders-eu"]
    assert select(names, re.compile("orders")) == ["orders"]


def test_the_chain_grows_with_each_cluster() -> None:
    at_b = MirroredTopic("orders", "id-b", 3, 1, {})
    note = TopicNote("mirror", "id-a", "id-b", ("A",), DONE, {})

    assert chain_at("A", {}, SOURCE) == ("A",)
    assert chain_at("B", {"A": note}, at_b) == ("A", "B")
    with pytest.raises(MirrorRefusedError, match="orders came from"):
        refuse_loops({"orders": ("A", "B"), "own": ("B",)}, "A", "--to a:1")


def test_a_note_on_a_topic_that_was_made_anew_is_no_chain() -> None:
    anew = MirroredTopic("orders", "another-id", 3, 1, {})

    assert chain_at("B", {"A": NOTE}, anew) == ("B",)


def test_a_topic_with_its_note_is_gone_on_with() -> None:
    plan = plan_topic(
        SOURCE,
        TARGET,
        {"A": NOTE},
        source_id="A",
        target_id="T",
        name="mirror",
        chain=("A",),
        is_target_empty=False,
        is_anew=False,
    )

    assert plan.action == RESUME


@pytest.mark.parametrize(
    ("source_id", "name", "target", "sentence"),
    [
        ("B", "mirror", TARGET, "the mirror of another cluster"),
        ("A", "other", TARGET, "--name mirror"),
        ("A", "mirror", TARGET._replace(partition_count=4), "3 partitions at the source and 4"),
        ("A", "mirror", TARGET._replace(topic_id="anew"), "at the target and made anew"),
    ],
)
def test_a_topic_of_another_use_is_refused(
    source_id: str, name: str, target: MirroredTopic, sentence: str
) -> None:
    with pytest.raises(MirrorRefusedError, match=re.escape(sentence)):
        plan_topic(
            SOURCE,
            target,
            {"A": NOTE},
            source_id=source_id,
            target_id="T",
            name=name,
            chain=("A",),
            is_target_empty=False,
            is_anew=False,
        )


def test_a_copy_keeps_everything_and_then_has_the_sources_configs() -> None:
    source = {"cleanup.policy": "compact", "max.message.bytes": "99", "segment.bytes": "1048576"}

    during = copying_configs(source, 1000)
    after = final_configs(source, 3, DONE)

    assert (during["cleanup.policy"], during["retention.ms"]) == ("delete", "-1")
    assert during["max.message.bytes"] == "1000"
    assert after.skipped == {}
    assert {name: value for name, value in after.wanted.items() if value} == source
    assert set(during) <= set(after.wanted), "nothing of the copy's own configs stays"


def test_what_does_not_fit_the_target_is_left_out_and_told() -> None:
    source = {
        "min.insync.replicas": "2",
        "leader.replication.throttled.replicas": "0:1",
        "message.timestamp.type": "LogAppendTime",
    }

    alone, following = final_configs(source, 1, DONE), final_configs(source, 3, FOLLOWING)

    assert set(alone.skipped) == {"min.insync.replicas", "leader.replication.throttled.replicas"}
    assert alone.wanted["message.timestamp.type"] == "LogAppendTime"
    assert following.wanted["message.timestamp.type"] == "CreateTime"
    assert following.wanted["min.insync.replicas"] == "2"
    assert "message.timestamp.type" in following.skipped
