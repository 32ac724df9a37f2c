import pytest

from headrace.client.positions import Kind, Position, parse_position
from headrace.errors import ConfigError


def test_a_position_is_read_without_the_command_line() -> None:
    assert parse_position("-1h", 7_200_000) == Position(Kind.TIME, 3_600_000)


def test_what_is_no_position_names_itself_and_all_that_can_be_written() -> None:
    with pytest.raises(ConfigError, match="position=yesterday: write oldest, latest"):
        parse_position("yesterday", 0)
