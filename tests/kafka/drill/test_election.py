import pytest

from headrace.kafka.drill.election import (
    MOST_UNDISTURBED_S,
    SETTINGS,
    Timeouts,
    read_timeouts,
    wait_limit,
)
from headrace.kafka.errors import DrillError

DEFAULTS = Timeouts(9.0, 2.0, 1.0, 1.0)


def test_time_outs_are_read_from_the_brokers_configs() -> None:
    configs = dict(zip(SETTINGS, ("9000", "2000", "1000", "1000"), strict=True))

    assert read_timeouts({**configs, "other": "x"}) == DEFAULTS


def test_a_broker_without_the_settings_is_refused_by_their_name() -> None:
    with pytest.raises(DrillError, match=r"broker\.session\.timeout\.ms"):
        read_timeouts({})


def test_a_dead_broker_may_cost_its_session() -> None:
    limit = wait_limit(DEFAULTS, has_broker_out=True, has_controller_out=False, undisturbed_s=0.02)

    assert str(limit) == "12.0 s (broker session 9 s + client allowance 3 s)"


def test_a_dead_controller_that_is_a_broker_costs_both_elections() -> None:
    limit = wait_limit(DEFAULTS, has_broker_out=True, has_controller_out=True, undisturbed_s=0)

    assert limit.seconds == 9 + 5 + 3


def test_a_dead_controller_alone_costs_no_session() -> None:
    limit = wait_limit(DEFAULTS, has_broker_out=False, has_controller_out=True, undisturbed_s=0)

    assert limit.seconds == 5 + 3


def test_a_busy_machine_is_told_and_granted() -> None:
    limit = wait_limit(DEFAULTS, has_broker_out=True, has_controller_out=False, undisturbed_s=1.25)

    assert str(limit) == (
        "13.2 s (broker session 9 s + client allowance 3 s + undisturbed wait 1.2 s)"
    )


def test_a_busy_machine_excuses_two_seconds_at_most() -> None:
    limit = wait_limit(DEFAULTS, has_broker_out=True, has_controller_out=False, undisturbed_s=30)

    assert limit.undisturbed_s == MOST_UNDISTURBED_S
    assert limit.seconds == 9 + 3 + 2
