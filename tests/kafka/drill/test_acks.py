import pytest

from headrace.kafka.drill.acks import NO_GAP, AckSeries, by_second, longest_gap, longest_wait


def series_of(*acks: tuple[float, float]) -> AckSeries:
    series = AckSeries()
    for at_s, waited_s in acks:
        series.add(at_s, waited_s)
    return series


def test_the_longest_wait_is_that_of_the_time_asked_for() -> None:
    series = series_of((1.0, 0.01), (5.05, 3.2), (5.06, 0.4), (20.0, 9.0))

    wait = series.longest_wait(2, 10)

    assert wait.seconds == 3.2
    assert wait.at_s == pytest.approx(5.0)


def test_a_time_without_acknowledgements_has_no_wait() -> None:
    assert series_of((1.0, 0.5)).longest_wait(5, 10).seconds == 0


def test_the_longest_gap_is_between_two_acknowledgements() -> None:
    series = series_of((1.0, 0), (1.1, 0), (4.1, 3), (4.2, 0), (5.2, 0))

    gap = series.longest_gap(0, 10)

    assert (gap.start_s, gap.end_s) == (1.1, 4.1)


def test_a_short_pause_is_no_gap() -> None:
    assert series_of((1.0, 0), (1.2, 0)).longest_gap(0, 10) == NO_GAP


def test_one_publisher_that_waits_is_not_hidden_by_another() -> None:
    busy = series_of(*((number / 10, 0.01) for number in range(100)))
    blocked = series_of((0.0, 0.01), (9.0, 8.9))

    assert longest_wait([busy, blocked], 0, 10).seconds == 8.9
    assert longest_gap([busy, blocked], 0, 10).seconds == 9


def test_the_course_has_a_row_for_each_second_also_the_empty_ones() -> None:
    course = by_second([series_of((0.5, 0.1), (2.5, 2.0)), series_of((0.7, 0.3))])

    assert [(each.at_s, each.acknowledged, each.longest_wait_s) for each in course] == [
        (0, 2, 0.3),
        (1, 0, 0.0),
        (2, 1, 2.0),
    ]


def test_no_publishers_have_no_course() -> None:
    assert by_second([]) == []
