import json
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.cli.consume.record_format import as_json, custom_format, json_format, value_format
from headrace.cli.produce.messages import parse_json_line


class ARecord(NamedTuple):
    """Stands for a confluent_kafka.Message."""

    its_value: bytes | None = b"v"
    its_key: bytes | None = b"k"
    its_headers: list[tuple[str, bytes | None]] | None = None
    its_timestamp: tuple[int, int] = (1, 1_700_000_000_000)

    def topic(self) -> str:
        return "orders"

    def partition(self) -> int:
        return 2

    def offset(self) -> int:
        return 7

    def timestamp(self) -> tuple[int, int]:
        return self.its_timestamp

    def key(self) -> bytes | None:
        return self.its_key

    def value(self) -> bytes | None:
        return self.its_value

    def headers(self) -> list[tuple[str, bytes | None]] | None:
        return self.its_headers


def test_a_value_is_printed_as_it_is() -> None:
    assert value_format(b"\n")(ARecord(b"\xff\0")) == b"\xff\0\n"
    assert value_format(b"\0")(ARecord(None)) == b"\0"


def test_a_record_as_json_has_all_there_is() -> None:
    record = ARecord(its_headers=[("a", b"1"), ("n", None)])

    assert json.loads(json_format(b"\n")(record)) == {
        "topic": "orders",
        "partition": 2,
        "offset": 7,
        "timestamp": 1_700_000_000_000,
        "key": "k",
        "headers": [{"key": "a", "value": "1"}, {"key": "n", "value": None}],
        "value": "v",
    }


def test_what_is_not_utf8_comes_in_base64() -> None:
    entry = json.loads(as_json(ARecord(b"\xff", b"\xfe", [("h", b"\xfd")])))

    assert (entry["value_base64"], entry["key_base64"]) == ("/w==", "/g==")
    assert entry["headers"] == [{"key": "h", "value_base64": "/Q=="}]
    assert "value" not in entry
    assert "key" not in entry


def test_a_record_without_a_timestamp_has_none_in_json() -> None:
    assert json.loads(as_json(ARecord(its_timestamp=(0, -1))))["timestamp"] is None


@given(
    st.none() | st.binary(),
    st.none() | st.binary(),
    st.lists(st.tuples(st.text(st.characters(codec="utf-8")), st.none() | st.binary())),
)
def test_produce_reads_back_what_consume_prints(
    value: bytes | None, key: bytes | None, headers: list[tuple[str, bytes | None]]
) -> None:
    message = parse_json_line(as_json(ARecord(value, key, headers)))

    assert (message.value, message.key, message.headers) == (value, key, headers)
    assert (message.timestamp_ms, message.partition) == (1_700_000_000_000, 2)


def test_a_format_knows_every_field() -> None:
    form = custom_format(r"%t/%p/%o/%T/%k/%s/%h/%K/%S/%%\n", b"")

    record = ARecord(its_headers=[("a", b"1"), ("n", None)])

    assert form(record) == b"orders/2/7/1700000000000/k/v/a=1,n=/1/1/%\n"


def test_a_format_tells_null_from_empty_by_its_size() -> None:
    form = custom_format("%K%S[%k%s]", b"\0")

    assert form(ARecord(None, b"")) == b"0-1[]\0"


def test_an_escaped_backslash_before_a_field_stays_one() -> None:
    assert custom_format(r"\\%s", b"")(ARecord()) == b"\\v"


@pytest.mark.parametrize("text", ["%x", "%", r"\q"])
def test_an_unknown_field_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="means nothing"):
        custom_format(text, b"")
