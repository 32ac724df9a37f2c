import pytest

from headrace.cli.produce.messages import (
    ANY_PARTITION,
    BadLineError,
    EveryMessage,
    ParsedMessage,
    json_parser,
    key_value_parser,
    parse_header,
    parse_json_line,
    value_parser,
)


def test_a_plain_line_is_a_value() -> None:
    assert value_parser(EveryMessage())(b"a:b") == ParsedMessage(b"a:b")


def test_the_command_line_adds_key_headers_and_partition() -> None:
    every = EveryMessage(key=b"k", headers=(("h", b"v"),), partition=2)

    assert value_parser(every)(b"x") == ParsedMessage(b"x", b"k", [("h", b"v")], partition=2)


def test_the_first_key_separator_counts() -> None:
    assert key_value_parser(EveryMessage(), b":")(b"k:v:w") == ParsedMessage(b"v:w", b"k")


def test_a_line_without_the_key_separator_is_refused() -> None:
    with pytest.raises(BadLineError, match="no key separator ':'"):
        key_value_parser(EveryMessage(), b":")(b"value")


@pytest.mark.parametrize(
    ("line", "value"),
    [
        (b'{"value": "text"}', b"text"),
        (b'{"value": ""}', b""),
        (b'{"value": null}', None),
        (b'{"value": {"a": [1, 2.5, true]}}', b'{"a":[1,2.5,true]}'),
        ('{"value": ["ü"]}'.encode(), '["ü"]'.encode()),
        (b'{"value": 12345678901234567890}', b"12345678901234567890"),
        (b'{"value_base64": "AP8="}', b"\x00\xff"),
    ],
)
def test_a_json_value_becomes_bytes(line: bytes, value: bytes | None) -> None:
    assert parse_json_line(line).value == value


def test_a_json_line_may_have_everything() -> None:
    line = b"""{"key": "k", "value": "v", "timestamp": 1700000000000, "partition": 3,
        "headers": [{"key": "a", "value": "1"}, {"key": "a", "value_base64": "/w=="},
        {"key": "n", "value": null}], "topic": "elsewhere", "offset": 9}"""

    headers = [("a", b"1"), ("a", b"\xff"), ("n", None)]
    assert parse_json_line(line) == ParsedMessage(b"v", b"k", headers, 1_700_000_000_000, 3)


def test_headers_may_be_an_object() -> None:
    line = b'{"value": "v", "headers": {"a": "1", "b": null, "c": 2}}'

    assert parse_json_line(line).headers == [("a", b"1"), ("b", None), ("c", b"2")]


def test_a_timestamp_may_be_a_time() -> None:
    line = b'{"value": "v", "timestamp": "2026-01-01T01:00:00+01:00"}'

    assert parse_json_line(line).timestamp_ms == 1_767_225_600_000


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{", "not JSON"),
        (b"\xff", "not UTF-8 at byte 0"),
        (b"[" * 100_000, "not JSON"),
        (b'{"value": NaN}', "NaN is no number"),
        (b'{"value": [1e999]}', "value has a number too large"),
        (b'["v"]', "not a JSON object but a list"),
        (b'{"key": "k"}', "there is no value"),
        (b'{"value": "v", "vlaue": 1}', "no field is called 'vlaue'"),
        (b'{"value": "v", "value_base64": "dg=="}', "both there"),
        (b'{"value_base64": "%%"}', "value_base64 is not base64"),
        (b'{"value_base64": 7}', "not a string but a number"),
        (b'{"value": "\\ud800"}', "surrogate"),
        (b'{"value": "v", "headers": "h"}', "neither an object nor a list but a string"),
        (b'{"value": "v", "headers": [{"value": "x"}]}', '"key" and "value"'),
        (b'{"value": "v", "timestamp": 0}', "timestamp 0 cannot be sent"),
        (b'{"value": "v", "timestamp": 1.5}', "not milliseconds"),
        (b'{"value": "v", "timestamp": true}', "not milliseconds"),
        (b'{"value": "v", "timestamp": "yesterday"}', "no time"),
        (b'{"value": "v", "partition": -2}', "no partition's number"),
        (b'{"value": "v", "partition": "0"}', "no partition's number"),
    ],
)
def test_a_bad_json_line_is_refused_with_what_is_wrong(line: bytes, reason: str) -> None:
    with pytest.raises(BadLineError, match=reason):
        parse_json_line(line)


def test_an_empty_line_among_json_lines_is_passed_over() -> None:
    assert json_parser(EveryMessage())(b" ") is None


def test_the_command_line_wins_over_a_json_line() -> None:
    parse = json_parser(EveryMessage(key=b"K", headers=(("h", b"2"),), partition=ANY_PARTITION))

    message = parse(b'{"key": "k", "value": "v", "partition": 5, "headers": {"h": "1"}}')

    assert message == ParsedMessage(b"v", b"K", [("h", b"1"), ("h", b"2")], partition=ANY_PARTITION)


def test_a_header_without_a_sign_has_no_value() -> None:
    assert parse_header("a=b=c") == ("a", b"b=c")
    assert parse_header("a=") == ("a", b"")
    assert parse_header("a") == ("a", None)
