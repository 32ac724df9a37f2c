from collections.abc import Callable

import pytest

from headrace.errors import (
    CorruptMessageError,
    InvalidRecordError,
    MessageTooLargeError,
    UndecodableRecordsError,
)
from headrace.records import scan_fallback, validation
from headrace.records.batch import HEADER_SIZE, BatchHeader, peek_header, seal
from headrace.records.builder import build_batch, numbered
from headrace.records.codecs import Codec, compress

Check = Callable[..., BatchHeader]


@pytest.fixture(params=["as installed", "python"])
def check(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Check:
    """check_for_append with generous limits, on either scanner."""
    if request.param == "python":
        monkeypatch.setattr(validation, "check_batch", scan_fallback.check_batch)
        monkeypatch.setattr(validation, "check_records", scan_fallback.check_records)

    def check_batch(
        batch: bytes | bytearray, *, max_message_bytes: int = 10**6, needs_keys: bool = False
    ) -> BatchHeader:
        return validation.check_for_append(
            memoryview(batch), max_message_bytes=max_message_bytes, needs_keys=needs_keys
        )

    return check_batch


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
    with pytest.raises(InvalidRecordError, match="record 1 has no key"):
        check(batch, needs_keys=True)


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
