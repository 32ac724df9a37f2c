import time
from datetime import datetime, timedelta, timezone

import pytest

from headrace.client.errors import PositionError
from headrace.client.positions import Position, PositionKind, parse_position, position_of
from headrace.errors import ConfigError

NOW_MS = 1_794_816_000_000  # 2026-11-16T08:00Z


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("oldest", Position(PositionKind.OLDEST)),
        ("earliest", Position(PositionKind.OLDEST)),
        ("Latest", Position(PositionKind.LATEST)),
        ("newest", Position(PositionKind.LATEST)),
        ("0", Position(PositionKind.OFFSET, 0)),
        ("120", Position(PositionKind.OFFSET, 120)),
        ("+10", Position(PositionKind.SHIFT, 10)),
        ("-10", Position(PositionKind.SHIFT, -10)),
        ("-1h", Position(PositionKind.TIME, NOW_MS - 3_600_000)),
        ("-30m", Position(PositionKind.TIME, NOW_MS - 1_800_000)),
        ("-90s", Position(PositionKind.TIME, NOW_MS - 90_000)),
        ("-500ms", Position(PositionKind.TIME, NOW_MS - 500)),
        ("-1.5d", Position(PositionKind.TIME, NOW_MS - 129_600_000)),
        ("-2w", Position(PositionKind.TIME, NOW_MS - 1_209_600_000)),
        ("@1763287200000", Position(PositionKind.TIME, 1_763_287_200_000)),
        ("2026-11-16", Position(PositionKind.TIME, 1_794_787_200_000)),
        ("2026-11-16T08:00", Position(PositionKind.TIME, NOW_MS)),
        ("2026-11-16T08:00:00.250Z", Position(PositionKind.TIME, NOW_MS + 250)),
        ("2026-11-16T10:00+02:00", Position(PositionKind.TIME, NOW_MS)),
    ],
)
def test_a_position_is_read(text: str, position: Position) -> None:
    assert parse_position(text, NOW_MS) == position


@pytest.mark.parametrize(
    "text", ["", "yesterday", "1h", "+1h", "--1", "-1y", "@", "@-1", "1.5", "٣"]
)
def test_what_is_no_position_is_refused_with_all_that_is(text: str) -> None:
    with pytest.raises(PositionError, match="oldest, latest, an offset"):
        parse_position(text, NOW_MS)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("@99999999999999999999", "times are in the years 1970 to 9999"),
        ("@253402300800000", "times are in the years 1970 to 9999"),
        ("9999-12-31T23:59:59-05:00", "times are in the years 1970 to 9999"),
        ("0001-01-01T00:00+05:00", "times are in the years 1970 to 9999"),
        ("1969-12-31", "times are in the years 1970 to 9999"),
        ("-9999999w", "times are in the years 1970 to 9999"),
        ("-99999999999999999999d", "times are in the years 1970 to 9999"),
        ("9223372036854775808", "no offset is beyond 9223372036854775807"),
        ("+9223372036854775808", "no offset is beyond 9223372036854775807"),
        ("-9223372036854775808", "no offset is beyond 9223372036854775807"),
        ("9" * 5000, f"'{'9' * 60}…' is no position; write oldest"),
        (f"-{'9' * 400}d", "…' is no position; write oldest"),
        ("10000-01-01", "write oldest"),
    ],
)
def test_a_number_beyond_all_bounds_is_refused_with_the_bound(text: str, sentence: str) -> None:
    with pytest.raises(PositionError) as raised:
        parse_position(text, NOW_MS)
    assert sentence in str(raised.value)


@pytest.mark.parametrize("text", ["@0", "@253402300799999", "9999-12-31T23:59:59.999Z"])
def test_the_first_and_the_last_time_are_positions(text: str) -> None:
    assert parse_position(text, NOW_MS).kind is PositionKind.TIME


def test_what_is_no_position_names_itself_and_all_that_can_be_written() -> None:
    with pytest.raises(ConfigError, match=r"^'yesterday' is no position; write oldest, latest"):
        parse_position("yesterday", 0)


def test_a_program_gives_a_position_as_it_has_it() -> None:
    zone = timezone(timedelta(hours=2))

    assert position_of(120) == Position.parse("120") == Position(PositionKind.OFFSET, 120)
    assert position_of(datetime(1970, 1, 1, 3, tzinfo=zone)) == Position(
        PositionKind.TIME, 3_600_000
    )
    for extreme in (datetime.min, datetime.max.replace(tzinfo=timezone(timedelta(hours=-12)))):
        with pytest.raises(ConfigError, match="the years 1970 to 9999"):
            position_of(extreme)


def test_a_time_without_a_zone_is_local_time(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "UTC-2")
        time.tzset()
        assert position_of(datetime(1970, 1, 1, 3)) == Position(PositionKind.TIME, 3_600_000)
    time.tzset()
