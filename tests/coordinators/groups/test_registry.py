from headrace.coordinators.groups.registry import GroupDeadlines


def test_the_earliest_is_due_first() -> None:
    deadlines = GroupDeadlines()
    deadlines.note("late", 30)
    deadlines.note("early", 10)

    assert deadlines.next_ms == 10
    assert deadlines.due(9) == []
    assert deadlines.due(30) == ["early", "late"]
    assert deadlines.next_ms is None


def test_an_earlier_deadline_counts_and_a_later_one_waits_to_be_said_again() -> None:
    deadlines = GroupDeadlines()
    deadlines.note("g", 20)
    deadlines.note("g", 10)
    deadlines.note("g", 50)

    assert deadlines.due(10) == ["g"]
    deadlines.note("g", 50)
    assert deadlines.due(49) == []
    assert deadlines.due(50) == ["g"]


def test_a_group_without_a_deadline_is_not_woken() -> None:
    deadlines = GroupDeadlines()
    deadlines.note("g", None)

    assert deadlines.next_ms is None


def test_a_forgotten_group_is_not_woken() -> None:
    deadlines = GroupDeadlines()
    deadlines.note("g", 10)
    deadlines.forget("g")

    assert deadlines.due(10) == []
