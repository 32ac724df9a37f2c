from typing import Any

import pytest

from bench.stalls.innocent import InnocentWaits
from bench.stalls.loads import LOADS
from bench.stalls.offenders import CulpritAccount
from bench.stalls.report import markdown, verdict
from bench.stalls.suite import Measured


def measured(
    engine: str = "headrace", peak_bytes: int | None = 40_000_000, **facts: Any
) -> Measured:
    waiting = dict(
        longest_ms=12.3,
        longest_kind="produce",
        longest_at_seconds=1.0,
        p50_ms=0.2,
        p999_ms=4.56,
        echo_longest_ms=1.2,
        client_gap_ms=1.1,
        member_error=0,
        lost=(),
        requests=1000,
        seconds=5.0,
        is_real_time=True,
        details={},
    )
    return Measured(
        load="quiet",
        engine=engine,
        waiting=InnocentWaits(**{**waiting, **facts}),
        outcome=CulpritAccount(notes=["nothing|at all"]),
        peak_bytes=peak_bytes,
    )


def row_of(text: str) -> list[str]:
    return [cell.strip() for cell in text.splitlines()[2].strip("|").split("|")]


def test_a_row_has_both_brokers() -> None:
    table = markdown(
        [measured(), measured("kafka", None, longest_ms=1234.0, lost=("produce",))], LOADS
    )

    assert row_of(table) == [
        "nothing",
        "12 ms",
        "1.23 s; **lost**: produce",
        "4.6 ms / 4.6 ms",
        "40 MB / ended",
        "1.2 ms / 1.2 ms",
        "yes",
        "nothing/at all",
        "nothing/at all",
    ]
    assert len(table.splitlines()) == 3


def test_a_broker_that_was_not_measured_is_a_dash() -> None:
    assert row_of(markdown([measured()], LOADS))[2:4] == ["–", "4.6 ms / –"]


@pytest.mark.parametrize(
    ("facts", "word"),
    [
        ({}, "yes"),
        ({"longest_ms": 50.0}, "**no**"),
        ({"member_error": 25}, "**no**"),
        ({"lost": ("metadata",)}, "**no**"),
    ],
)
def test_the_verdict_is_under_50_ms_and_nobody_lost(facts: dict[str, Any], word: str) -> None:
    assert verdict(measured(**facts)) == word
