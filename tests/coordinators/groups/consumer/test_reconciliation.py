from uuid import UUID

import pytest

from headrace.coordinators.errors import FencedMemberEpochError
from headrace.coordinators.groups.consumer.reconciliation import Reconciliation
from headrace.coordinators.groups.consumer.state import (
    STABLE,
    UNRELEASED_PARTITIONS,
    UNREVOKED_PARTITIONS,
)
from headrace.coordinators.groups.records import Assignment, CurrentAssignment

APPLES, PEARS = UUID(int=1), UUID(int=2)
OWNERS = {(APPLES, 9): "other"}


def current(
    state: int, assigned: Assignment, pending: Assignment | None = None
) -> CurrentAssignment:
    return CurrentAssignment("group", "member", 5, 4, state, assigned, pending or {})


def step(
    before: CurrentAssignment,
    target: Assignment,
    owned: Assignment | None,
    *,
    subscription_changed: bool = False,
    subscribed: frozenset[UUID] = frozenset({APPLES}),
) -> CurrentAssignment:
    return Reconciliation(
        before,
        6,
        target,
        owned=owned,
        subscribed=subscribed,
        owner_of=OWNERS.get,
        subscription_changed=subscription_changed,
    ).step()


def test_what_is_kept_keeps_the_epoch_at_which_it_was_given() -> None:
    after = step(current(STABLE, {APPLES: (0,)}), {APPLES: (0, 1)}, None)

    assert (after.state, after.member_epoch, after.previous_member_epoch) == (STABLE, 6, 5)
    assert (after.assigned, after.assigned_epochs) == ({APPLES: (0, 1)}, {APPLES: (5, 6)})


def test_what_others_hold_is_waited_for() -> None:
    after = step(current(STABLE, {}), {APPLES: (0, 9)}, None)

    assert (after.state, after.member_epoch) == (UNRELEASED_PARTITIONS, 6)
    assert after.assigned == {APPLES: (0,)}


def test_one_that_gives_up_stays_in_its_epoch_until_it_says_so() -> None:
    asked = step(current(STABLE, {APPLES: (0, 1)}), {APPLES: (0,)}, None)
    assert (asked.state, asked.member_epoch) == (UNREVOKED_PARTITIONS, 5)
    assert (asked.assigned, asked.pending_revocation) == ({APPLES: (0,)}, {APPLES: (1,)})

    assert step(asked, {APPLES: (0,)}, {APPLES: (0, 1)}) is asked
    after = step(asked, {APPLES: (0,)}, {APPLES: (0,)})
    assert (after.state, after.member_epoch, after.pending_revocation) == (STABLE, 6, {})


def test_one_that_has_given_up_already_moves_on_at_once() -> None:
    after = step(current(STABLE, {APPLES: (0, 1)}), {APPLES: (0,)}, {APPLES: (0,)})

    assert (after.state, after.member_epoch) == (STABLE, 6)


def test_what_was_given_up_may_be_had_back() -> None:
    before = current(UNREVOKED_PARTITIONS, {}, {APPLES: (9,)})

    assert step(before, {APPLES: (9,)}, {}).assigned == {APPLES: (9,)}


def test_topics_that_are_not_subscribed_to_are_no_target() -> None:
    assert step(current(STABLE, {}), {PEARS: (0,)}, None).assigned == {}


def test_an_unsubscribed_topic_is_asked_back_while_the_target_is_old() -> None:
    before = current(STABLE, {APPLES: (0,), PEARS: (0,)})._replace(member_epoch=6)

    asked = step(before, {}, None, subscription_changed=True)
    gone = step(before, {}, {APPLES: (0,)}, subscription_changed=True)

    assert (asked.state, asked.pending_revocation) == (UNREVOKED_PARTITIONS, {PEARS: (0,)})
    assert (gone.state, gone.assigned, gone.pending_revocation) == (STABLE, {APPLES: (0,)}, {})


def test_a_state_of_a_newer_broker_is_fenced_until_the_member_has_nothing() -> None:
    before = current(99, {})

    with pytest.raises(FencedMemberEpochError):
        step(before, {}, None)
    assert step(before, {APPLES: (0,)}, {}).assigned == {APPLES: (0,)}
