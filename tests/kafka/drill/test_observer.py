from headrace.client.cluster_questions import Replica
from headrace.kafka.drill.observer import View, changes
from headrace.kafka.drill.timeline import EventKind

LABELS = {"drill": "partition", "bulk": "resync partition"}


def view(leaders: dict[int, int | None], isr: tuple[int, ...], topic: str = "drill") -> View:
    return {
        (topic, number): Replica(topic, number, leader, (1, 2, 3), isr, {})
        for number, leader in leaders.items()
    }


def texts(before: View, after: View) -> list[str]:
    return [change.text for change in changes(before, after, LABELS)]


def test_two_equal_views_have_no_change() -> None:
    assert texts(view({0: 1}, (1, 2, 3)), view({0: 1}, (3, 2, 1))) == []


def test_a_topic_that_appears_is_no_change() -> None:
    assert texts({}, view({0: 1}, (1, 2, 3))) == []


def test_a_leader_that_moved_is_told_with_all_its_partitions() -> None:
    found = changes(
        view({0: 1, 1: 2, 2: 1}, (1, 2, 3)), view({0: 3, 1: 2, 2: 3}, (1, 2, 3)), LABELS
    )

    assert found == [(EventKind.LEADER, "node 3 leads partitions 0, 2 (was node 1)", 3)]


def test_a_partition_without_a_leader_is_told() -> None:
    before, after = view({0: 1}, (1,)), view({0: None}, (1,))

    assert texts(before, after) == ["no leader for partition 0 (was node 1)"]
    assert texts(after, before) == ["node 1 leads partition 0 (was nobody)"]


def test_a_node_that_leaves_and_joins_an_isr_is_told() -> None:
    whole, hurt = view({0: 1, 1: 1}, (1, 2, 3)), view({0: 1, 1: 1}, (1, 3))

    assert texts(whole, hurt) == ["ISR shrank: without node 2 in partitions 0, 1"]
    assert texts(hurt, whole) == ["ISR grew: node 2 in partitions 0, 1"]


def test_topics_are_told_apart_by_their_label() -> None:
    before = view({0: 1}, (1, 2, 3)) | view({0: 1}, (1, 2, 3), "bulk")
    after = view({0: 1}, (1, 2)) | view({0: 1}, (1, 2), "bulk")

    assert texts(before, after) == [
        "ISR shrank: without node 3 in resync partition 0",
        "ISR shrank: without node 3 in partition 0",
    ]


def test_many_partitions_are_counted() -> None:
    leaders: dict[int, int | None] = dict.fromkeys(range(20), 1)

    assert texts(view(leaders, (1, 2, 3)), view(leaders, (1, 2))) == [
        "ISR shrank: without node 3 in 20 partitions"
    ]
