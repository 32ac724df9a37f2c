from collections.abc import Callable

import pytest

from headrace.config import LogConfig
from headrace.records import scan_fallback, validation
from headrace.records.batch import (
    HEADER_SIZE,
    LOG_APPEND_TIME_BIT,
    BatchHeader,
    crc_is_valid,
    peek_header,
    seal,
)
from headrace.records.builder import build_batch, numbered
from headrace.records.codecs import Codec, compress
from headrace.records.errors import (
    BatchTooLargeError,
    CorruptMessageError,
    InvalidRecordError,
    InvalidTimestampError,
    MessageTooLargeError,
    UndecodableRecordsError,
    UnsupportedCompressionError,
)
from headrace.records.record import Record, iter_records

NOW_MS = 1_794_793_500_000  # when Kafka wrote its batches
Check = Callable[..., BatchHeader]


@pytest.fixture(params=["as installed", "python"])
def check(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Check:
    """check_for_append with generous limits, on either scanner."""
    if request.param == "python":
        monkeypatch.setattr(validation, "check_batch", scan_fallback.check_batch)
        monkeypatch.setattr(validation, "check_records", scan_fallback.check_records)

    def check_batch(
        batch: bytes | bytearray,
        *,
        max_message_bytes: int = 10**6,
        needs_keys: bool = False,
        takes_zstd: bool = True,
        **config: int,
    ) -> BatchHeader:
        rules = LogConfig(max_message_bytes=max_message_bytes, is_compacted=needs_keys, **config)
        return validation.check_for_append(memoryview(batch), rules, NOW_MS, takes_zstd=takes_zstd)

    return check_batch


def timed(*timestamps: int, codec: int = Codec.NONE) -> bytearray:
    """A batch of records with these timestamps."""
    return build_batch(
        [Record(i, at, b"k", b"v", []) for i, at in enumerate(timestamps)], codec=codec
    )


def patched(position: int, field: bytes, codec: int = Codec.NONE) -> bytearray:
    """A good batch of two records with one field replaced and the checksum made good."""
    batch = build_batch(numbered([b"one", b"two"]), codec=codec)
    batch[position : position + len(field)] = field
    seal(batch)
    return batch


def with_payload(payload: bytes, codec: int) -> bytearray:
    """The header of a good batch of two records in front of other bytes."""
    batch = build_batch(numbered([b"one", b"two"]), codec=codec)[:HEADER_SIZE] + payload
    batch[8:12] = (len(batch) - 12).to_bytes(4, "big")
    seal(batch)
    return batch


@pytest.mark.parametrize("codec", Codec)
def test_a_good_batch_gives_its_header(check: Check, codec: Codec) -> None:
    batch = build_batch(
        numbered([b"one", None], timestamp=7), codec=codec, producer_id=3, base_sequence=0
    )

    header = check(batch)

    assert isinstance(header, BatchHeader)
    assert header == peek_header(batch)


def test_a_producer_id_without_a_sequence_is_refused(check: Check) -> None:
    batch = build_batch(numbered([b"one"]), producer_id=3, base_sequence=-1)

    with pytest.raises(InvalidRecordError, match="sequence -1"):
        check(batch)


def test_kafkas_own_batches_pass(check: Check, kafka_batches: dict[str, list[bytes]]) -> None:
    for partition in ("codec-gzip-0", "codec-none-0", "java-codecs-0", "idem-0"):
        for batch in kafka_batches[partition]:
            assert check(batch) == peek_header(batch)


@pytest.mark.parametrize("magic", [0, 1, 3, 255])
def test_another_magic_is_invalid(check: Check, magic: int) -> None:
    with pytest.raises(InvalidRecordError, match=f"magic is {magic}, not 2"):
        check(patched(16, bytes([magic])))


def test_an_old_message_set_shorter_than_a_header_is_invalid(check: Check) -> None:
    with pytest.raises(InvalidRecordError, match="magic is 1, not 2"):
        check(bytes(16) + b"\x01" + bytes(20))


def test_no_bytes_are_no_batch(check: Check) -> None:
    with pytest.raises(InvalidRecordError, match="there is no batch"):
        check(b"")


def test_a_cut_batch_is_corrupt_wherever_it_is_cut(check: Check) -> None:
    batch = build_batch(numbered([b"one", b"two"]))

    for end in range(1, len(batch)):
        with pytest.raises(CorruptMessageError):
            check(batch[:end])


@pytest.mark.parametrize("length", [-(2**31), -1, 0, 48, 2**31 - 1])
def test_an_impossible_length_is_corrupt(check: Check, length: int) -> None:
    with pytest.raises(CorruptMessageError):
        check(patched(8, length.to_bytes(4, "big", signed=True)))


def test_a_wrong_checksum_is_corrupt(check: Check) -> None:
    batch = build_batch(numbered([b"one"]))
    batch[-2] ^= 1

    with pytest.raises(CorruptMessageError, match="CRC-32C"):
        check(batch)


def test_two_batches_are_invalid(check: Check) -> None:
    batch = build_batch(numbered([b"one"]))

    with pytest.raises(InvalidRecordError, match=f"{len(batch)} bytes follow the batch"):
        check(batch * 2)


def test_two_batches_are_invalid_even_when_they_are_too_large_together(check: Check) -> None:
    batch = build_batch(numbered([b"one"]))

    with pytest.raises(InvalidRecordError, match="bytes follow the batch"):
        check(batch * 2, max_message_bytes=len(batch))


def test_a_batch_may_be_as_large_as_the_limit_and_no_larger(check: Check) -> None:
    batch = build_batch(numbered([b"one"]))

    assert check(batch, max_message_bytes=len(batch)).size == len(batch)
    with pytest.raises(MessageTooLargeError) as caught:
        check(batch, max_message_bytes=len(batch) - 1)
    assert (caught.value.size, caught.value.limit) == (len(batch), len(batch) - 1)


def test_the_limit_is_for_the_compressed_size(check: Check) -> None:
    batch = build_batch(numbered([bytes(100_000)]), codec=Codec.ZSTD)

    assert check(batch, max_message_bytes=1000).codec == Codec.ZSTD


def test_a_control_batch_is_invalid(check: Check) -> None:
    with pytest.raises(InvalidRecordError, match="control"):
        check(build_batch(numbered([b"one"]), is_control=True))


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
@pytest.mark.parametrize("count", [-(2**31), -1, 0, 1, 3, 2**31 - 1])
def test_a_count_that_is_not_that_of_the_offsets_is_invalid(
    check: Check, count: int, codec: Codec
) -> None:
    with pytest.raises(InvalidRecordError, match=f"counts {count} records"):
        check(patched(57, count.to_bytes(4, "big", signed=True), codec))


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.SNAPPY])
@pytest.mark.parametrize("count", [1, 3])
def test_a_count_that_is_not_that_of_the_records_is_invalid(
    check: Check, count: int, codec: Codec
) -> None:
    batch = patched(57, count.to_bytes(4, "big"), codec)
    batch[23:27] = (count - 1).to_bytes(4, "big")
    seal(batch)

    with pytest.raises(InvalidRecordError, match="record"):
        check(batch)


@pytest.mark.parametrize("codec", Codec)
def test_offsets_with_a_gap_are_invalid(check: Check, codec: Codec) -> None:
    first, third = numbered([b"one"]), numbered([b"three"], first_offset=2)
    batch = build_batch([*first, *third], codec=codec)
    batch[23:27] = (1).to_bytes(4, "big")
    seal(batch)

    with pytest.raises(InvalidRecordError, match="record 1 has offset delta 2"):
        check(batch)


@pytest.mark.parametrize("codec", Codec)
def test_a_record_without_key_is_invalid_where_keys_are_needed(check: Check, codec: Codec) -> None:
    batch = build_batch(
        [*numbered([b"one"], key=b"k"), *numbered([b"two"], first_offset=1)], codec=codec
    )

    assert check(batch, needs_keys=False).record_count == 2
    with pytest.raises(InvalidRecordError, match="1 records have no key") as caught:
        check(batch, needs_keys=True)
    assert caught.value.record_errors == [
        (1, "the record has no key, and a compacted topic needs one")
    ]


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_an_unknown_codec_is_undecodable(check: Check, codec: int) -> None:
    with pytest.raises(UndecodableRecordsError, match=f"number {codec}"):
        check(patched(21, bytes([0, codec])))


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_a_codec_bit_on_plain_records_is_undecodable(check: Check, codec: Codec) -> None:
    with pytest.raises(UndecodableRecordsError):
        check(patched(21, bytes([0, codec])))


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_compressed_bytes_that_are_no_records_are_invalid(check: Check, codec: Codec) -> None:
    with pytest.raises(InvalidRecordError, match="record 0"):
        check(with_payload(compress(codec, b"\xff" * 50), codec))


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("told", [-1, 0, NOW_MS - 1, NOW_MS + 8, 2**63 - 1])
def test_a_header_gets_the_largest_timestamp_of_its_records(
    check: Check, codec: Codec, told: int
) -> None:
    batch = timed(NOW_MS, NOW_MS + 7, NOW_MS + 3, codec=codec)
    true = bytes(batch)
    batch[35:43] = told.to_bytes(8, "big", signed=True)
    seal(batch)

    header = check(batch)

    assert header.max_timestamp == NOW_MS + 7
    assert header == peek_header(batch)
    assert crc_is_valid(batch)
    assert bytes(batch) == true


@pytest.mark.parametrize("codec", Codec)
def test_every_timestamp_too_far_from_the_clock_is_named(check: Check, codec: Codec) -> None:
    times = [NOW_MS, NOW_MS - 1001, -1, NOW_MS + 501, NOW_MS + 500, 0, NOW_MS - 1000]
    limits = {"timestamp_before_max_ms": 1000, "timestamp_after_max_ms": 500}

    with pytest.raises(InvalidTimestampError, match="3 records") as caught:
        check(timed(*times, codec=codec), **limits)

    reason = f"the record's timestamp is outside [{NOW_MS - 1000}, {NOW_MS + 500}]"
    assert caught.value.record_errors == [(1, reason), (3, reason), (5, reason)]
    assert f"the first is record 1 with {NOW_MS - 1001}" in str(caught.value)
    assert check(timed(*times, codec=codec), timestamp_after_max_ms=501).record_count == 7


def test_what_the_header_says_of_time_neither_refuses_nor_saves_a_batch(check: Check) -> None:
    good, bad = timed(NOW_MS), timed(NOW_MS, NOW_MS + 10**9)
    for batch, told in ((good, NOW_MS + 10**9), (bad, NOW_MS)):
        batch[35:43] = told.to_bytes(8, "big")
        seal(batch)

    assert check(good).max_timestamp == NOW_MS
    with pytest.raises(InvalidTimestampError):
        check(bad)


def test_a_topic_that_stamps_takes_any_timestamp(check: Check) -> None:
    batch = timed(0, NOW_MS + 10**9, -5)

    assert check(batch, is_log_append_time=True, timestamp_before_max_ms=1).record_count == 3


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("is_log_append_time", [True, False])
def test_a_client_may_not_claim_log_append_time(
    check: Check, codec: Codec, is_log_append_time: bool
) -> None:
    batch = timed(NOW_MS, NOW_MS, codec=codec)
    batch[22] |= LOG_APPEND_TIME_BIT
    seal(batch)

    with pytest.raises(InvalidTimestampError) as caught:
        check(batch, is_log_append_time=is_log_append_time)

    assert [index for index, _ in caught.value.record_errors] == [0, 1]
    assert "LogAppendTime" in caught.value.record_errors[0][1]


@pytest.mark.parametrize("codec", Codec)
def test_one_wrong_time_among_missing_keys_makes_it_an_error_of_timestamps(
    check: Check, codec: Codec
) -> None:
    records = [
        Record(0, NOW_MS, None, b"v", []),
        Record(1, NOW_MS, b"k", b"v", []),
        Record(2, NOW_MS + 10**9, b"k", b"v", []),
    ]

    with pytest.raises(InvalidTimestampError) as caught:
        check(build_batch(records, codec=codec), needs_keys=True)

    reasons = dict(caught.value.record_errors)
    assert list(reasons) == [0, 2]
    assert "no key" in reasons[0]
    assert "outside" in reasons[2]


def test_broken_records_are_an_error_of_the_batch(check: Check) -> None:
    batch = build_batch(numbered([b"one", b"two"]))
    batch[-1] = 2  # one header, and then the batch ends
    seal(batch)

    with pytest.raises(InvalidRecordError, match="record 1 runs past its length") as caught:
        check(batch, needs_keys=True)

    assert caught.value.record_errors == ()


def test_a_batch_may_be_as_large_as_a_segment_and_no_larger(check: Check) -> None:
    batch = timed(NOW_MS)

    assert check(batch, segment_bytes=len(batch)).size == len(batch)
    with pytest.raises(BatchTooLargeError) as caught:
        check(batch, segment_bytes=len(batch) - 1)
    assert (caught.value.size, caught.value.limit) == (len(batch), len(batch) - 1)
    # Kafka looks at the records first.
    with pytest.raises(InvalidTimestampError):
        check(timed(NOW_MS + 10**9), segment_bytes=len(batch) - 1)


def test_zstd_is_refused_where_the_request_is_too_old_for_it(check: Check) -> None:
    batch = timed(NOW_MS, codec=Codec.ZSTD)
    damaged = batch[:-1] + b"!"

    assert check(batch).codec == Codec.ZSTD
    for refused in (batch, damaged):
        with pytest.raises(UnsupportedCompressionError, match="zstd needs Produce v7"):
            check(refused, takes_zstd=False)
    assert check(timed(NOW_MS, codec=Codec.LZ4), takes_zstd=False).codec == Codec.LZ4
    with pytest.raises(CorruptMessageError):
        check(batch[:50], takes_zstd=False)


def test_records_are_left_as_they_are_when_the_header_is_corrected(check: Check) -> None:
    batch = timed(NOW_MS, NOW_MS + 7)
    batch[35:43] = bytes(8)
    seal(batch)

    check(batch)

    assert [record.timestamp for record in iter_records(batch)] == [NOW_MS, NOW_MS + 7]
