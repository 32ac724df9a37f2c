"""What is remembered of letters that were sent again."""

import pytest

from headrace.pipelines.dead_letters.sent import Sent, TooManyRangesError, read_sent


def test_letters_sent_in_turn_move_the_position() -> None:
    sent = Sent()

    sent.add([0, 1], letters=[0, 1, 2], end=3)

    assert (sent.position, sent.later, sent.metadata()) == (2, set(), "")
    assert 1 in sent
    assert 2 not in sent


def test_letters_sent_out_of_turn_are_remembered_one_by_one() -> None:
    sent = Sent()

    sent.add([2, 4, 5, 6], letters=range(8), end=8)

    assert (sent.position, sent.metadata()) == (0, "sent 2,4-6")
    assert read_sent(0, "sent 2,4-6") == sent


def test_the_position_passes_those_sent_before_and_offsets_without_a_letter() -> None:
    sent = read_sent(0, "sent 2,5")

    sent.add([0], letters=[0, 2, 5], end=9)

    assert (sent.position, sent.metadata()) == (9, "")


def test_a_group_without_a_commit_has_sent_nothing() -> None:
    assert read_sent(-1001, None) == Sent()
    assert read_sent(3, "somebody else's words") == Sent(3)


def test_more_than_a_commit_can_hold_is_refused() -> None:
    sent = Sent()
    sent.add(range(1, 4000, 2), letters=range(4000), end=4000)

    with pytest.raises(TooManyRangesError):
        sent.metadata()


def test_a_topic_that_was_made_anew_has_sent_nothing() -> None:
    noted = Sent(3, {5}).metadata("id-of-the-old")

    assert noted == "topic id-of-the-old; sent 5"
    assert read_sent(3, noted, "id-of-the-old") == Sent(3, {5})
    assert read_sent(3, noted, "id-of-the-new") == Sent()
    assert read_sent(3, Sent(3).metadata("id-of-the-old"), "id-of-the-new") == Sent()


def test_what_was_noted_without_an_id_still_counts() -> None:
    assert read_sent(3, "sent 5", "some-id") == Sent(3, {5})
