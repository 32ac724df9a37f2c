import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headrace.records.batch import HEADER_SIZE, peek_header
from headrace.records.builder import build_batch, numbered
from headrace.records.errors import CorruptMessageError, InvalidRecordError, RecordError
from headrace.records.record import (
    ControlRecord,
    ControlType,
    Record,
    decode_control,
    decode_varint,
    encode_varint,
    iter_records,
)


@pytest.mark.parametrize(
    ("number", "encoded"),
    [
        (0, "00"),
        (-1, "01"),
        (1, "02"),
        (63, "7e"),
        (-64, "7f"),
        (64, "8001"),
        (2**31 - 1, "feffffff0f"),
        (-(2**31), "ffffffff0f"),
        (-(2**63), "ffffffffffffffffff01"),
    ],
)
def test_numbers_are_zigzagged_in_groups_of_seven_bits(number: int, encoded: str) -> None:
    assert encode_varint(number).hex() == encoded
    assert decode_varint(bytes.fromhex(encoded), 0) == (number, len(encoded) // 2)


@given(st.integers(-(2**63), 2**63 - 1), st.binary(max_size=5))
def test_a_number_comes_back_and_ends_where_it_ends(number: int, prefix: bytes) -> None:
    encoded = prefix + encode_varint(number)

    assert decode_varint(encoded + b"\xff", len(prefix)) == (number, len(encoded))


def test_a_number_without_end_is_refused() -> None:
    with pytest.raises(InvalidRecordError):
        decode_varint(b"\xff" * 20, 0)
    with pytest.raises(IndexError):
        decode_varint(b"\xff" * 3, 0)


def expected_messages(capture: Path) -> dict[str, list[dict[str, Any]]]:
    messages = defaultdict(list)
    for line in (capture / "expected.jsonl").read_text().splitlines():
        message = json.loads(line)
        messages[f"{message['topic']}-{message['partition']}"].append(message)
    return messages


def data_records(batches: list[bytes]) -> list[Record]:
    headers = [peek_header(batch) for batch in batches]
    return [
        record
        for batch, header in zip(batches, headers, strict=True)
        if header is not None and not header.is_control
        for record in iter_records(batch)
    ]


def as_text(data: bytes | None) -> str | None:
    return None if data is None else data.decode()


def test_every_message_that_kafka_stored_is_read(
    kafka_capture: Path, kafka_batches: dict[str, list[bytes]]
) -> None:
    expected = expected_messages(kafka_capture)
    assert sum(map(len, expected.values())) == 1497

    for partition, messages in expected.items():
        start = messages[0]["offset"]
        read = [
            {
                "offset": record.offset,
                "timestamp": record.timestamp,
                "key": as_text(record.key),
                "value": as_text(record.value),
                "headers": [[name, as_text(value)] for name, value in record.headers],
            }
            for record in data_records(kafka_batches[partition])
            if record.offset >= start
        ]
        wanted = [{name: message[name] for name in read[0]} for message in messages]
        assert read == wanted, partition


def test_the_capture_has_every_codec_from_both_clients(
    kafka_batches: dict[str, list[bytes]],
) -> None:
    def codecs(partition: str) -> set[int]:
        headers = [peek_header(batch) for batch in kafka_batches[partition]]
        return {header.codec for header in headers if header is not None}

    assert codecs("java-codecs-0") == {0, 1, 2, 3, 4}
    for number, name in enumerate(["none", "gzip", "snappy", "lz4", "zstd"]):
        assert codecs(f"codec-{name}-0") == {number}


def test_the_sixteen_transaction_markers_are_read(kafka_batches: dict[str, list[bytes]]) -> None:
    markers = []
    for batch in kafka_batches["txn-0"]:
        header = peek_header(batch)
        assert header is not None
        if header.is_control:
            (record,) = iter_records(batch)
            markers.append((header.producer_id, decode_control(record).type.name))

    # Rounds 0-7 of producer 2 alternate; in rounds 8-11 it commits, then producer 3 aborts.
    assert markers == [(2, "COMMIT"), (2, "ABORT")] * 4 + [(2, "COMMIT"), (3, "ABORT")] * 4


def test_a_marker_tells_type_and_coordinator_epoch() -> None:
    marker = Record(9, 0, b"\0\0\0\1", b"\0\0\0\0\0\7", [])

    assert decode_control(marker) == ControlRecord(ControlType.COMMIT, 7)


@pytest.mark.parametrize(
    ("key", "value"),
    [(None, b"\0" * 6), (b"\0\0\0", b"\0" * 6), (b"\0\0\0\5", b"\0" * 6), (b"\0" * 4, None)],
)
def test_an_ordinary_record_is_no_marker(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(InvalidRecordError, match="offset 9"):
        decode_control(Record(9, 0, key, value, []))


def test_a_batch_that_is_cut_short_is_refused() -> None:
    batch = build_batch(numbered([b"value"]))

    for end in range(len(batch)):
        with pytest.raises(CorruptMessageError):
            next(iter_records(batch[:end]))


def test_bytes_after_the_batch_are_not_read() -> None:
    batch = build_batch(numbered([b"value"]))

    assert list(iter_records(batch + b"\xff" * 100)) == list(iter_records(batch))


@given(st.binary(max_size=80), st.integers(-5, 5))
@example(bytes.fromhex("0c000000020000"), 1)
def test_records_of_any_bytes_are_read_or_refused(payload: bytes, count: int) -> None:
    batch = build_batch(numbered([b"x"]))
    batch[HEADER_SIZE:] = payload
    batch[8:12] = (len(batch) - 12).to_bytes(4, "big")
    batch[57:61] = count.to_bytes(4, "big", signed=True)

    try:
        records = list(iter_records(batch))
    except RecordError:
        return
    assert len(records) == max(count, 0)


def test_a_header_name_that_is_not_utf8_survives() -> None:
    batch = build_batch([Record(0, 0, None, None, [("ab", b"1")])])
    position = batch.index(b"ab")
    batch[position : position + 2] = b"\xff\xfe"

    (record,) = iter_records(batch)

    assert build_batch([record])[HEADER_SIZE:] == batch[HEADER_SIZE:]
