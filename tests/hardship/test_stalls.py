"""Beside every hostile or heavy load the loop keeps turning: an innocent client is answered, a
group member with a 6 s session stays, and the culprit gets an answer that Kafka has.

The loads are those of `python -m bench.stalls`, smaller. How short a stall must be is
said there, on a quiet machine; here it only has to be far from what a session can bear.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from bench.report import SUBJECT
from bench.stalls.load import StallLoad
from bench.stalls.loads import LOADS
from bench.stalls.suite import Measured, driver_of, measure

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

# A third of the session: on a busy machine this is no figure, and a blocked loop is beyond it.
LONGEST_STALL_MS = 2_000
SCALE = 0.2
# Large enough that one turn of the loop for all of it would be noticed.
SCALES = {
    "times": 1.0,
    "million": 0.5,
    "bombs": 0.5,
    "tiny-bombs": 0.5,
    "absurd": 0.5,
    "delete": 0.5,
}


@pytest.fixture
def measured(tmp_path: Path) -> Callable[[StallLoad], Measured]:
    def run(load: StallLoad) -> Measured:
        return measure(
            load,
            driver_of(SUBJECT, load),
            tmp_path / load.name,
            scale=SCALES.get(load.name, SCALE),
            warm_up_seconds=1,
        )

    return run


@pytest.mark.parametrize("load", LOADS, ids=lambda load: load.name)
def test_nobody_stalls_the_others(
    load: StallLoad, measured: Callable[[StallLoad], Measured]
) -> None:
    result = measured(load)

    waiting, outcome = result.waiting, result.outcome
    assert result.peak_bytes is not None, "the broker has ended"
    assert waiting.lost == ()
    assert not waiting.is_evicted, f"the member lost its session (error {waiting.member_error})"
    assert waiting.longest_ms < LONGEST_STALL_MS, f"{waiting.longest_kind}: {outcome.sentence()}"
    assert outcome.unanswered == 0
    assert set(outcome.answers) <= load.answers
    assert outcome.closed == 0 or load.may_be_closed
    assert CULPRIT_GOT.get(load.name, lambda facts: True)(outcome.facts), outcome.sentence()


# Beyond its answers: what those who did nothing wrong must have got done in the end.
CULPRIT_GOT: dict[str, Callable[[dict[str, float]], bool]] = {
    "hoarders": lambda facts: facts["let_go"] + facts["never_let_in"] == facts["hoarders"],
    "cold": lambda facts: facts["messages_read"] == facts["messages"],
    "delete": lambda facts: facts["bytes_left"] == 0,
    "compaction": lambda facts: facts["bytes_after"] < facts["bytes_before"] / 2,
    "wide": lambda facts: facts["messages_read"] > 0,
}
