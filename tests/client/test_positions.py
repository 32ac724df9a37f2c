import time
from datetime import datetime, timedelta, timezone

import pytest

from headrace.client.positions import Kind, Position, parse_position, position_of
from headrace.errors import ConfigError


def test_a_position_is_read_without_the_command_line() -> None:
    assert parse_position("-1h", 7_200_000) == Position(Kind.TIME, 3_600_000)


def test_what_is_no_position_names_itself_and_all_that_can_be_written() -> None:
    with pytest.raises(ConfigError, match="position=yesterday: write oldest, latest"):
        parse_position("yesterday", 0)


def test_a_program_gives_a_position_as_it_has_it() -> None:
    zone = timezone(timedelta(hours=2))

    assert position_of(120) == Position.parse("120") == Position(Kind.OFFSET, 120)
    assert position_of(datetime(1970, 1, 1, 3, tzinfo=zone)) == Position(Kind.TIME, 3_600_000)
    for extreme in (datetime.min, datetime.max.replace(tzinfo=timezone(timedelta(hours=-12)))):
        with pytest.raises(ConfigError, match="the years 1970 to 9999"):
            position_of(extreme)


def test_a_time_without_a_zone_is_local_time(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "UTC-2")
        time.tzset()
        assert position_of(datetime(1970, 1, 1, 3)) == Position(Kind.TIME, 3_600_000)
    time.tzset()
