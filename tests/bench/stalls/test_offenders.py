from collections.abc import Iterator
from typing import Any

import pytest

from bench.stalls import frames
from bench.stalls.offenders import CulpritAccount, Offender, all_at_once, together
from headrace.testing import running_broker


@pytest.fixture
def broker() -> Iterator[Any]:
    with running_broker(watched=True) as running:
        yield running


def test_answers_are_counted_by_kafkas_names(broker) -> None:
    outcome = CulpritAccount()

    all_at_once(broker.port, [[frames.metadata(["missing"]), frames.metadata([])]] * 2, outcome)
    outcome.read_answers()

    assert (outcome.requests, outcome.answered, outcome.closed) == (4, 4, 0)
    assert outcome.answers == {"UNKNOWN_TOPIC_OR_PARTITION": 2}
    assert "4 of 4 answered (2 UNKNOWN_TOPIC_OR_PARTITION)" in outcome.sentence()


def test_a_connection_that_the_broker_closes_is_counted_once(broker) -> None:
    broker.faults.disconnect("Metadata")
    outcome = CulpritAccount()

    with Offender(broker.port, outcome) as offender:
        answers = offender.ask_all([frames.metadata([])] * 3)

    assert answers == [None] * 3
    assert (outcome.requests, outcome.answered, outcome.closed) == (3, 0, 1)
    assert "1 connections closed" in outcome.sentence()


def test_a_broker_that_does_not_answer_is_waited_for_in_vain(broker) -> None:
    broker.faults.delay("Metadata", 60)
    outcome = CulpritAccount()

    with Offender(broker.port, outcome, patience_s=0.1) as offender:
        assert offender.ask(frames.metadata([])) is None

    assert (outcome.closed, outcome.unanswered) == (0, 1)


def test_a_look_at_an_open_connection_does_not_wait(broker) -> None:
    outcome = CulpritAccount()
    with Offender(broker.port, outcome) as offender:
        assert offender.ask(frames.metadata([]))
        assert not offender.is_closed_by_peer()
        assert offender.push(b"\0")
        broker.disconnect_all()

        assert offender.receive(frames.metadata([]), 0) is None
        assert offender.is_closed_by_peer()
        assert not offender.push(b"\0")

    assert outcome.closed == 1


def test_what_fails_in_a_thread_is_raised_when_all_have_ended() -> None:
    ended = []

    def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        together([fail, lambda: ended.append(1)])

    assert ended == [1]
