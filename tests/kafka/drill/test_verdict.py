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


ALLOWED = "12.0 s (broker session 9 s + client allowance 3 s)"


def test_a_publisher_that_waited_longer_than_allowed_is_a_figure() -> None:
    report = drill_report(scenario_report(), scenario_report(waited_s=13.3))

    assert report.is_passed
    assert report.verdict.endswith(
        f"; leader killed: a publisher waited 13.3 s, more than {ALLOWED}, "
        "but less than 2 times that"
    )


@pytest.mark.parametrize(
    ("others", "undisturbed_s"),
    [(0.1, 0.02), (None, 0.02), (0.1, 0.7)],  # the last: waits were the cluster's own
)
def test_a_wait_far_beyond_on_a_machine_that_was_not_busy_fails_the_drill(
    others: float | None, undisturbed_s: float
) -> None:
    report = drill_report(
        scenario_report(waited_s=24.2, others_cpu_share=others, undisturbed_s=undisturbed_s)
    )

    assert not report.is_passed
    assert report.verdict == (
        f"FAIL: leader killed: a publisher waited 24.2 s, more than {ALLOWED} "
        "and more than 2 times that, on a machine that was not busy"
    )


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({"others_cpu_share": 0.61}, "others took 61% of its CPU"),
        ({"others_cpu_share": None, "undisturbed_s": 0.7}, "waits were 0.7 s without any fault"),
    ],
)
def test_a_wait_far_beyond_on_a_busy_machine_says_why_it_fails_nothing(
    facts: dict[str, float | None], reason: str
) -> None:
    report = drill_report(scenario_report(waited_s=100.0, **facts))  # type: ignore[arg-type]

    assert report.is_passed
    assert report.verdict.endswith(f"more than {ALLOWED}, on a busy machine: {reason}")


@pytest.mark.parametrize("others", [0.1, 0.9, None])
def test_no_busy_machine_excuses_a_wait_of_more_than_ten_times_the_limit(
    others: float | None,
) -> None:
    report = drill_report(
        scenario_report(waited_s=120.5, others_cpu_share=others, undisturbed_s=0.7)
    )

    assert report.verdict == (
        f"FAIL: leader killed: a publisher waited 120.5 s, more than {ALLOWED} "
        "and more than 10 times that, which no busy machine excuses"
    )


def test_no_busy_machine_excuses_a_loss() -> None:
    report = drill_report(
        scenario_report(waited_s=100.0, others_cpu_share=0.9), balance=replace(GOOD, lost=1)
    )

    assert report.verdict == "FAIL: 1 lost"


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
