"""Which letters are sent again, and what of it is remembered."""

from headrace.pipelines.dead_letters.letter import DeadLetter, LetterSource
from headrace.pipelines.dead_letters.resubmission import ResubmissionPlan
from headrace.pipelines.dead_letters.sent import Sent


def a_letter(
    letter_offset: int, offset: int, reason: str = "bad", *, topic_id: str = "", cut: str = ""
) -> DeadLetter:
    return DeadLetter(
        source=LetterSource("p", "", topic_id, "in", 0, offset),
        reason=reason,
        timestamp_ms=1000,
        key=None,
        value=b"x",
        headers=[],
        letter_partition=0,
        letter_offset=letter_offset,
        letter_timestamp_ms=2000,
        cut=cut,
    )


def everything(_letter: DeadLetter) -> bool:
    return True


def test_a_record_written_twice_is_sent_once_and_both_are_remembered() -> None:
    letters = [a_letter(0, 10), a_letter(1, 10), a_letter(2, 11)]

    plan = ResubmissionPlan(letters, {}, everything)

    assert plan.chosen == {(0, 0), (0, 2)}
    assert plan.remember([letters[0].source], {0: 3}) == {0: Sent(2)}


def test_what_was_sent_before_is_left_out_though_it_was_written_again() -> None:
    letters = [a_letter(0, 10), a_letter(1, 10)]

    assert ResubmissionPlan(letters, {0: Sent(1)}, everything).chosen == set()
    assert ResubmissionPlan(letters, {0: Sent(1)}, everything, is_again=True).chosen == {(0, 0)}


def test_those_meant_are_chosen_up_to_the_limit() -> None:
    letters = [a_letter(0, 1, "a"), a_letter(1, 2, "b"), a_letter(2, 3, "b")]

    plan = ResubmissionPlan(letters, {}, lambda letter: letter.reason == "b", limit=1)

    assert plan.chosen == {(0, 1)}
    assert plan.topics == {"in": 1}
    assert plan.remember([letters[1].source], {0: 3}) == {0: Sent(0, {1})}


def test_only_what_was_delivered_is_remembered() -> None:
    plan = ResubmissionPlan([a_letter(0, 1)], {}, everything)

    assert plan.remember([], {0: 1}) == {}


def test_a_topic_made_anew_has_other_letters_at_the_same_offset() -> None:
    letters = [a_letter(0, 10, topic_id="old"), a_letter(1, 10, topic_id="new")]

    assert ResubmissionPlan(letters, {}, everything).chosen == {(0, 0), (0, 1)}
    assert ResubmissionPlan(letters, {0: Sent(1)}, everything).chosen == {(0, 1)}


def test_a_letter_that_was_cut_is_not_sent() -> None:
    letters = [a_letter(0, 10, cut="value cut at 5 of 9 bytes"), a_letter(1, 11)]

    plan = ResubmissionPlan(letters, {}, everything, limit=1)

    assert plan.chosen == {(0, 1)}
    assert plan.cut == [letters[0].source]


def test_the_letter_that_is_meant_is_sent_not_another_of_its_record() -> None:
    letters = [a_letter(0, 10, cut="value cut at 5 of 9 bytes"), a_letter(1, 10)]

    plan = ResubmissionPlan(letters, {}, lambda letter: letter.letter_offset == 1)

    assert plan.chosen == {(0, 1)}
    assert plan.cut == []
