import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.protocol.errors import WireError
from headrace.protocol.headers import read_request_header, response_header
from headrace.protocol.primitives import read_uvarint, skip_tags, write_uvarint


@given(st.integers(0, 2**32 - 1))
def test_an_unsigned_varint_survives_the_round_trip(value: int) -> None:
    encoded = write_uvarint(value)

    assert read_uvarint(encoded, 0, len(encoded)) == (value, len(encoded))


def test_a_varint_longer_than_five_bytes_is_refused() -> None:
    with pytest.raises(WireError, match="five bytes"):
        read_uvarint(b"\xff" * 6, 0, 6)


def test_unknown_tagged_fields_are_skipped() -> None:
    tags = b"\x02" + b"\x05\x03abc" + b"\x09\x00" + b"rest"

    assert tags[skip_tags(tags, 0, len(tags)) :] == b"rest"


def test_a_tagged_field_beyond_the_message_is_refused() -> None:
    with pytest.raises(WireError):
        skip_tags(b"\x01\x05\x7fabc", 0, 6)


def test_the_client_id_of_a_flexible_request_is_an_ordinary_string() -> None:
    frame = bytes.fromhex("00120004000000070004676f6c640005676f6c6404312e3000")

    header = read_request_header(frame, 0, len(frame))

    assert (header.api_key, header.api_version, header.correlation_id) == (18, 4, 7)
    assert header.client_id == b"gold"
    assert frame[header.body :] == b"\x05gold\x041.0\x00"


def test_a_null_client_id_is_none() -> None:
    frame = bytes.fromhex("0003000100000001ffff")

    assert read_request_header(frame, 0, len(frame)).client_id is None


def test_api_versions_answers_with_the_old_header() -> None:
    assert response_header(18, 4, 7, 10) == bytes.fromhex("0000000e00000007")
    assert response_header(3, 13, 7, 10) == bytes.fromhex("0000000f0000000700")


def test_a_frame_shorter_than_its_header_is_refused() -> None:
    with pytest.raises(WireError):
        read_request_header(b"\x00\x03\x00", 0, 3)
