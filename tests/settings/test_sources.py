import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace
from headrace.errors import InvalidConfigError, UnknownSettingError
from headrace.settings.catalogue import BROKER
from headrace.settings.own import OTHER_VARIABLES
from headrace.settings.sources import (
    VARIABLES,
    Assignment,
    parse_properties,
    read_environment,
    read_properties,
    variable_name,
)


def pairs(text: str) -> list[tuple[str, str]]:
    return [(name, value) for name, value, _ in parse_properties(text, "f")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1", [("a", "1")]),
        ("a:1", [("a", "1")]),
        ("a 1", [("a", "1")]),
        ("  a \t=  1 ", [("a", "1 ")]),
        ("a = = 1", [("a", "= 1")]),
        ("a==1", [("a", "=1")]),
        ("a", [("a", "")]),
        ("a=", [("a", "")]),
        ("# a=1\n! b=2\n  # c=3\n\nd=4", [("d", "4")]),
        ("a=1 # not a comment", [("a", "1 # not a comment")]),
        ("a=b,\\\n   c", [("a", "b,c")]),
        ("a=1\\\\\nb=2", [("a", "1\\"), ("b", "2")]),
        ("a=1\\\n# part of it", [("a", "1# part of it")]),
        ("a=1\\", [("a", "1")]),
        ("a\\=b=1", [("a=b", "1")]),
        ("a\\:b\\ c=1", [("a:b c", "1")]),
        ("a=\\tx\\ny\\u0041\\q", [("a", "\tx\nyAq")]),
        ("a=\\ud83d\\ude00", [("a", "\U0001f600")]),
        ("a=1\r\nb=2\rc=3", [("a", "1"), ("b", "2"), ("c", "3")]),
        ("a=1\na=2", [("a", "1"), ("a", "2")]),
        ("", []),
        ("\\", []),
    ],
)
def test_a_properties_text_is_read_as_java_reads_it(
    text: str, expected: list[tuple[str, str]]
) -> None:
    assert pairs(text) == expected


def test_an_assignment_knows_the_line_it_begins_on() -> None:
    text = "# one\n\na=1,\\\n2\nb=3\n"

    assert [each.source for each in parse_properties(text, "server.properties")] == [
        "server.properties:3",
        "server.properties:5",
    ]


def test_a_broken_unicode_escape_names_its_line() -> None:
    with pytest.raises(InvalidConfigError, match=r"^f:2: write \\u with four"):
        pairs("a=1\nb=\\u12")


@given(st.text())
def test_no_text_breaks_the_reader_in_another_way(text: str) -> None:
    try:
        found = pairs(text)
    except InvalidConfigError:
        return
    assert all(isinstance(part, str) for pair in found for part in pair)


def test_a_file_that_is_not_utf_8_is_taken_for_latin_1(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_bytes(b"log.dirs=/srv/\xe9t\xe9\n")

    assert read_properties(path) == [Assignment("log.dirs", "/srv/été", f"{path}:1")]


def test_every_setting_has_a_variable_of_its_own() -> None:
    assert len(VARIABLES) == len(BROKER)
    assert variable_name("log.segment.bytes") == "HEADRACE_LOG_SEGMENT_BYTES"
    assert variable_name("headrace.http.port") == "HEADRACE_HTTP_PORT"


def test_the_environment_gives_settings_and_other_variables_are_left_alone() -> None:
    environment = {
        "PATH": "/bin",
        "HEADRACE_LOG_SEGMENT_BYTES": "2097152",
        "HEADRACE_ACKS_ALL_SYNC": "false",
        "HEADRACE_BOOTSTRAP": "127.0.0.1:9092",
    }

    assert read_environment(environment) == [
        Assignment("log.segment.bytes", "2097152", "HEADRACE_LOG_SEGMENT_BYTES"),
        Assignment("headrace.acks.all.sync", "false", "HEADRACE_ACKS_ALL_SYNC"),
    ]


def test_a_misspelt_variable_is_refused_with_the_one_that_was_meant() -> None:
    with pytest.raises(UnknownSettingError) as caught:
        read_environment({"HEADRACE_LOG_SEGMNT_BYTES": "1"})

    assert str(caught.value) == (
        "environment: Unknown broker config name: HEADRACE_LOG_SEGMNT_BYTES; "
        "did you mean HEADRACE_LOG_SEGMENT_BYTES?"
    )


def test_a_variable_like_no_other_is_refused_without_a_guess() -> None:
    with pytest.raises(UnknownSettingError, match=r"HEADRACE_QQQQQQQQ$"):
        read_environment({"HEADRACE_QQQQQQQQ": "1"})


def test_every_variable_of_ours_is_known_to_a_broker_that_starts_beside_it():
    """One that is not would keep `headrace serve` from starting where a pipeline runs."""
    package = Path(headrace.__file__).parent
    named = {
        name
        for path in package.rglob("*.py")
        for name in re.findall(r'"(HEADRACE_[A-Z_]+)"', path.read_text("utf-8"))
    }

    assert named - {"HEADRACE_"} <= OTHER_VARIABLES | VARIABLES.keys()
