import pytest

from headrace.model import known_topic_id


@pytest.mark.parametrize("told", ["bY+a/Q", "bY-a_Q"])
def test_a_topic_has_one_id_whoever_writes_it(told: str) -> None:
    assert known_topic_id(told) == "bY-a_Q"


@pytest.mark.parametrize("told", ["A" * 22, "", None])
def test_a_broker_that_knows_no_ids_tells_none(told: str | None) -> None:
    assert known_topic_id(told) == ""
