"""Which letters are sent again, and what of it is remembered."""

from headrace.pipelines.dead_letters.letter import DeadLetter
from headrace.pipelines.dead_letters.resubmission import Plan
from headrace.pipelines.dead_letters.sent import Sent


def a_letter(letter_offset: int, offset: int, reason: str = "bad") -> DeadLetter:
    return DeadLetter(
        pipeline="p",
        reason=reason,
        topic="in",
        partition=0,
        offset=offset,
        timestamp_ms=1000,
        key=None,
        value=b"x",
        headers=[],
        letter_partition=0,
        letter_offset=letter_offset,
        letter_timestamp_ms=2000,
    )


def everything(_letter: DeadLetter) -> bool:
    return True


def test_a_record_written_twice_is_sent_once_and_both_are_remembered() -> None:
    letters = [a_letter(0, 10), a_letter(1, 10), a_letter(2, 11)]

    plan = Plan(letters, {}, everything)

    assert plan.chosen == {(0, 0), (0, 2)}
    assert plan.remember([letters[0].source], {0: 3}) == {0: Sent(2)}


def test_what_was_sent_before_is_left_out_though_it_was_written_again() -> None:
    letters = [a_letter(0, 10), a_letter(1, 10)]

    assert Plan(letters, {0: Sent(1)}, everything).chosen == set()
    assert Plan(letters, {0: Sent(1)}, everything, is_again=True).chosen == {(0, 0)}


def test_those_meant_are_chosen_up_to_the_limit() -> None:
    letters = [a_letter(0, 1, "a"), a_letter(1, 2, "b"), a_letter(2, 3, "b")]

    plan = Plan(letters, {}, lambda letter: letter.reason == "b", limit=1)

    assert plan.chosen == {(0, 1)}
    assert plan.topics == {"in": 1}
    assert plan.remember([letters[1].source], {0: 3}) == {0: Sent(0, {1})}


def test_only_what_was_delivered_is_remembered() -> None:
    plan = Plan([a_letter(0, 1)], {}, everything)

    assert plan.remember([], {0: 1}) == {}
