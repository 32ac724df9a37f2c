import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace
from headrace.errors import InvalidConfigError
from headrace.properties import Assignment, parse_properties, read_properties
from headrace.settings.catalogue import BROKER
from headrace.settings.errors import UnknownSettingError
from headrace.settings.own import OTHER_VARIABLES
from headrace.settings.sources import VARIABLES, read_environment, variable_name


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

    assert read_environment(environment) == (
        [
            Assignment("log.segment.bytes", "2097152", "HEADRACE_LOG_SEGMENT_BYTES"),
            Assignment("headrace.acks.all.sync", "false", "HEADRACE_ACKS_ALL_SYNC"),
        ],
        [],
    )


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("HEADRACE_LOG_SEGMNT_BYTES", "LOG_SEGMENT_BYTES"),
        ("HEADRACE_HTTP_PROT", "HTTP_PORT"),
        ("HEADRACE_LOGDIRS", "LOG_DIRS"),
        ("HEADRACE_LISTENER", "LISTENERS"),
        ("HEADRACE_SEGMENT_BYTES", "LOG_SEGMENT_BYTES"),
        ("HEADRACE_HEADRACE_HTTP_PORT", "HTTP_PORT"),
        ("HEADRACE_BOOTSTRAPS", "BOOTSTRAP"),
        ("HEADRACE_log_dirs", "LOG_DIRS"),
        ("headrace_log_dirs", "LOG_DIRS"),
        ("Headrace_Log_Dir", "LOG_DIR"),
        ("headrace_bootstrap", "BOOTSTRAP"),
    ],
)
def test_a_misspelt_variable_is_refused_with_the_one_that_was_meant(
    written: str, meant: str
) -> None:
    with pytest.raises(UnknownSettingError) as caught:
        read_environment({written: "1"})

    assert str(caught.value) == (
        f"environment: Unknown broker config name: {written}; did you mean HEADRACE_{meant}?"
    )


@pytest.mark.parametrize(
    "name", ["QQQQQQQQ", "VERSION", "IMAGE", "HOST", "PORT", "BROKER", "POD_NAME", "LOG_LEVEL"]
)
def test_a_variable_like_none_of_ours_is_told_and_has_no_effect(name: str) -> None:
    assert read_environment({f"HEADRACE_{name}": "1"}) == (
        [],
        [f"environment: HEADRACE_{name} is no setting and has no effect"],
    )


def service_variables(name: str, port: int) -> dict[str, str]:
    """What Kubernetes sets for a service of this name with one port that is called client."""
    link = f"{name}_PORT_{port}_TCP"
    return {
        f"{name}_SERVICE_HOST": "10.0.0.1",
        f"{name}_SERVICE_PORT": str(port),
        f"{name}_SERVICE_PORT_CLIENT": str(port),
        f"{name}_PORT": f"tcp://10.0.0.1:{port}",
        link: f"tcp://10.0.0.1:{port}",
        f"{link}_PROTO": "tcp",
        f"{link}_PORT": str(port),
        f"{link}_ADDR": "10.0.0.1",
    }


@pytest.mark.parametrize("name", ["HEADRACE", "HEADRACE_HTTP", "HEADRACE_LOG_DIRS"])
def test_kubernetes_variables_of_a_service_are_told_in_one_sentence(name: str) -> None:
    variables = service_variables(name, 9092)

    assignments, warnings = read_environment({**variables, "HEADRACE_NODE_ID": "7"})

    assert assignments == [Assignment("node.id", "7", "HEADRACE_NODE_ID")]
    assert warnings == [
        "environment: Kubernetes' variables of a service are no settings and have no effect: "
        f"{', '.join(sorted(variables))}; with enableServiceLinks: false the pod gets none"
    ]


@pytest.mark.parametrize("value", ["9644", "tcp", "tcp://nowhere"])
def test_a_port_that_is_no_url_of_a_service_is_the_users_own(value: str) -> None:
    assert read_environment({"HEADRACE_HTTP_PORT": value}) == (
        [Assignment("headrace.http.port", value, "HEADRACE_HTTP_PORT")],
        [],
    )


def test_every_variable_of_ours_is_known_to_a_broker_that_starts_beside_it():
    """One that is not would be warned of, or keep `headrace serve` from starting beside it."""
    root = Path(__file__).parents[2]
    workshop = (root / name for name in ("bench", "demo", "tools"))
    named = {
        name
        for place in (Path(headrace.__file__).parent, *workshop)
        for path in place.rglob("*.py")
        for name in re.findall(r'"(HEADRACE_[A-Z_]+)"', path.read_text("utf-8"))
    }

    assert named - {"HEADRACE_"} <= OTHER_VARIABLES | VARIABLES.keys()
