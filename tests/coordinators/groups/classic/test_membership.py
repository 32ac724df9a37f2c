"""The vote on the protocol."""

from headrace.coordinators.groups.classic.member import Member
from headrace.coordinators.groups.classic.membership import Membership


def members_liking(*preferences: str) -> Membership:
    """One member for each word, its letters being the protocols it knows, best first."""
    membership = Membership()
    for number, letters in enumerate(preferences):
        protocols = tuple((letter, b"") for letter in letters)
        membership.add(Member(f"m{number}", None, "c", "h", 1, 1, protocols), "consumer")
    return membership


def test_the_protocol_that_most_members_like_best_is_chosen() -> None:
    assert members_liking("ab", "ba", "ba").choose_protocol() == "b"


def test_a_protocol_that_one_member_does_not_know_is_no_candidate() -> None:
    assert members_liking("ab", "ab", "bc").choose_protocol() == "b"


def test_members_vote_for_the_best_candidate_they_know() -> None:
    assert members_liking("xabc", "ybca", "zbac").choose_protocol() == "b"


def test_a_tie_goes_to_the_one_who_came_first() -> None:
    assert members_liking("ab", "ba").choose_protocol() == "a"


def test_who_left_has_no_vote() -> None:
    membership = members_liking("ab", "b", "ab")
    assert membership.choose_protocol() == "b"
    membership.remove("m1")
    assert membership.choose_protocol() == "a"


def test_the_lead_goes_to_the_oldest_member() -> None:
    membership = members_liking("a", "a", "a")
    assert membership.leader == "m0"
    membership.remove("m0")
    assert membership.leader == "m1"
    membership.remove("m1")
    membership.remove("m2")
    assert membership.leader is None
