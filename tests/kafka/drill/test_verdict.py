from dataclasses import replace

import pytest
from tests.kafka.drill.sample import GOOD, READ, drill_report, scenario_report

from headrace.kafka.drill.ledger import Balance, LiveReading, Missing
from headrace.kafka.drill.verdict import judge


def test_a_drill_that_kept_every_promise_passes() -> None:
    report = drill_report()

    assert report.is_passed
    assert report.verdict == (
        "PASS: 100 of 100 acknowledged; 0 lost; 0 duplicated; 0 reordered; 100 read live; "
        "longest wait 9.1 s of 12.0 s (leader killed)"
    )


@pytest.mark.parametrize(
    ("broken", "sentence"),
    [
        (replace(GOOD, lost=1), "FAIL: 1 lost"),
        (replace(GOOD, duplicated=2), "FAIL: 2 duplicated"),
        (replace(GOOD, reordered=3), "FAIL: 3 reordered"),
        (replace(GOOD, stray=4), "FAIL: 4 in a place not theirs"),
        (
            replace(GOOD, sent=105, failed=4),
            "FAIL: 100 of 105 acknowledged, 4 failed, 1 never answered",
        ),
        (Balance(0, 0, 0, 0, 0, 0, 0, 0, 0), "FAIL: 0 of 0 acknowledged"),
    ],
)
def test_a_broken_promise_fails_the_drill(broken: Balance, sentence: str) -> None:
    report = drill_report(balance=broken)

    assert not report.is_passed
    assert report.verdict == sentence


@pytest.mark.parametrize(
    ("broken", "sentence"),
    [
        (replace(READ, missed=1), "FAIL: 100 read live, 1 missed"),
        (replace(READ, vanished=1), "FAIL: 100 read live, 1 gone from the topic afterwards"),
        (replace(READ, reordered=1), "FAIL: 100 read live, 1 out of order"),
    ],
)
def test_consumers_that_were_misled_fail_the_drill(broken: LiveReading, sentence: str) -> None:
    assert drill_report(live=broken).verdict == sentence


def test_a_rebalance_that_repeats_records_is_no_failure() -> None:
    assert drill_report(live=replace(READ, read_again=500)).is_passed


def test_a_publisher_that_waited_longer_than_the_election_fails_the_drill() -> None:
    report = drill_report(scenario_report(waited_s=12.4))

    assert report.verdict == (
        "FAIL: leader killed: a publisher waited 12.4 s, "
        "more than 12.0 s (broker session 9 s + client allowance 3 s)"
    )


def test_a_loss_says_where_to_look() -> None:
    lost = replace(GOOD, lost=2, examples=(Missing("publisher-0-key-3", 1, 7, 9),))

    assert "such as sequences 7 to 8 of publisher-0-key-3 in partition 1" in (
        drill_report(balance=lost).verdict
    )


def test_a_publisher_that_gave_up_fails_the_drill() -> None:
    checks = judge(GOOD, READ, [scenario_report()], ["Fatal: out of order"])

    assert [check.text for check in checks if not check.is_kept] == [
        "a publisher gave up: Fatal: out of order"
    ]
