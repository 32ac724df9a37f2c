import pytest

from headrace.kafka.drill.plan import Plan, Scenario
from headrace.kafka.errors import DrillError


def test_a_plan_has_every_scenario_unless_told_otherwise() -> None:
    assert Plan().scenarios == tuple(Scenario)


@pytest.mark.parametrize(
    ("name", "value"),
    [("rate", 0), ("message_bytes", 3), ("publishers", 0), ("partitions", -1)],
)
def test_a_value_that_cannot_be_is_refused_by_its_option(name: str, value: int) -> None:
    with pytest.raises(DrillError, match=f"--{name.replace('_', '-')} {value}: "):
        Plan(**{name: value})  # type: ignore[arg-type]


def test_a_message_larger_than_kafka_takes_is_refused() -> None:
    with pytest.raises(DrillError, match="--message-bytes 2000000: 1000000 is the most"):
        Plan(message_bytes=2_000_000)


def test_a_plan_without_scenarios_is_refused_with_those_there_are() -> None:
    with pytest.raises(DrillError, match="leader, follower, controller, pause"):
        Plan(scenarios=())
