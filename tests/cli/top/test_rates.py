from headrace.cli.top.rates import GroupRate, TopicRate, group_rates, topic_rates
from headrace.cli.top.snapshot import ClusterSnapshot, GroupSnapshot

A0, A1, B0 = ("a", 0), ("a", 1), ("b", 0)


def look(at_s: float = 0.0, **parts: object) -> ClusterSnapshot:
    return ClusterSnapshot(at_s, {}, {}, {})._replace(**parts)


def test_a_topics_rate_is_that_of_its_partitions_together() -> None:
    before = look(ends={A0: 10, A1: 20}, sizes_bytes={A0: 1000, A1: 0})
    after = look(2.0, ends={A0: 30, A1: 22}, sizes_bytes={A0: 3000, A1: 100})

    assert topic_rates(before, after) == [TopicRate("a", 2, 11.0, 1050.0, 3100)]


def test_the_busiest_topic_comes_first_then_by_name() -> None:
    ends = {("idle", 0): 5, ("also idle", 0): 5, ("busy", 0): 5}

    rates = topic_rates(look(ends=ends), look(1.0, ends={**ends, ("busy", 0): 6}))

    assert [each.topic for each in rates] == ["busy", "also idle", "idle"]


def test_a_topic_that_came_between_has_no_rate_yet() -> None:
    (rate,) = topic_rates(look(), look(1.0, ends={A0: 100}))

    assert rate == TopicRate("a", 1, None, None, None)


def test_a_topic_that_went_is_not_shown() -> None:
    assert topic_rates(look(ends={A0: 1}), look(1.0)) == []


def test_offsets_that_went_back_count_as_no_messages() -> None:
    before = look(ends={A0: 100, A1: 0})

    (rate,) = topic_rates(before, look(1.0, ends={A0: 3, A1: 7}))

    assert rate.messages_per_s == 7.0


def test_bytes_are_unknown_when_retention_took_some_away() -> None:
    before = look(ends={A0: 1}, sizes_bytes={A0: 1000})
    after = look(1.0, ends={A0: 2}, sizes_bytes={A0: 10})

    assert topic_rates(before, after) == [TopicRate("a", 1, 1.0, None, 10)]


def test_a_groups_rate_and_lag_come_from_what_it_committed() -> None:
    before = look(groups={"g": GroupSnapshot("Stable", 2, {A0: 10})})
    after = look(
        2.0,
        ends={A0: 50, A1: 5, B0: 1000},
        groups={"g": GroupSnapshot("Stable", 3, {A0: 30, A1: 5})},
    )

    assert group_rates(before, after) == [GroupRate("g", "Stable", 3, 10.0, 20)]


def test_the_group_furthest_behind_comes_first() -> None:
    groups = {
        "even": GroupSnapshot("Stable", 1, {A0: 10}),
        "behind": GroupSnapshot("Empty", 0, {A0: 1}),
        "new": GroupSnapshot("Stable", 1, {}),
    }

    rates = group_rates(look(), look(1.0, ends={A0: 10}, groups=groups))

    assert [(each.group, each.lag) for each in rates] == [("behind", 9), ("even", 0), ("new", None)]


def test_a_group_whose_topic_is_gone_has_no_lag() -> None:
    group = {"g": GroupSnapshot("Empty", 0, {A0: 10})}

    (rate,) = group_rates(look(groups=group), look(1.0, groups=group))

    assert (rate.lag, rate.messages_per_s) == (None, 0.0)
