import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.records.batch import (
    HEADER,
    HEADER_SIZE,
    BatchHeader,
    compute_crc,
    crc_is_valid,
    peek_header,
    seal,
    stamp,
    stamp_append_time,
)
from headrace.records.builder import build_batch, numbered
from headrace.records.record import iter_records


def a_header(**changes: int) -> BatchHeader:
    fields = dict.fromkeys(BatchHeader._fields, 0)
    return BatchHeader(**{**fields, **changes})


def test_the_header_is_sixty_one_bytes() -> None:
    assert HEADER.size == HEADER_SIZE == 61


def test_a_header_is_read_at_a_position() -> None:
    first = build_batch(numbered([b"a"]))
    second = build_batch(numbered([b"b", b"c"], first_offset=1), leader_epoch=3)

    header = peek_header(first + second, len(first))

    assert header is not None
    assert (header.base_offset, header.last_offset, header.next_offset) == (1, 2, 3)
    assert (header.size, header.leader_epoch, header.record_count) == (len(second), 3, 2)


@pytest.mark.parametrize("missing", [1, 30, 61])
def test_too_few_bytes_have_no_header(missing: int) -> None:
    assert peek_header(bytes(HEADER_SIZE - missing)) is None
    assert peek_header(bytes(100), 40 + missing - 1) is None


def test_attribute_bits_have_names() -> None:
    plain = a_header(attributes=4)
    everything = a_header(attributes=0x7B)

    assert plain.codec == 4
    assert not plain.is_log_append_time
    assert not plain.is_transactional
    assert not plain.is_control
    assert not plain.has_delete_horizon
    assert everything.codec == 3
    assert everything.is_log_append_time
    assert everything.is_transactional
    assert everything.is_control
    assert everything.has_delete_horizon


def test_a_sequence_wraps_to_zero() -> None:
    assert a_header(base_sequence=2**31 - 1, last_offset_delta=0).last_sequence == 2**31 - 1
    assert a_header(base_sequence=2**31 - 1, last_offset_delta=1).last_sequence == 0
    assert a_header(base_sequence=2**31 - 3, last_offset_delta=9).last_sequence == 6
    assert a_header(base_sequence=-1, last_offset_delta=9).last_sequence == -1


def test_a_batch_without_producer_says_so() -> None:
    assert not a_header(producer_id=-1).has_producer
    assert a_header(producer_id=0).has_producer


@given(st.integers(0, 2**63 - 1), st.integers(0, 2**31 - 1))
def test_a_stamp_moves_the_batch_and_leaves_its_checksum_true(offset: int, epoch: int) -> None:
    batch = build_batch(numbered([b"a", b"b"]))

    stamp(memoryview(batch), offset, epoch)

    header = peek_header(batch)
    assert header is not None
    assert (header.base_offset, header.leader_epoch) == (offset, epoch)
    assert crc_is_valid(batch)
    assert [record.offset for record in iter_records(batch)] == [offset, offset + 1]


def test_append_time_replaces_the_timestamps_and_seals_the_batch() -> None:
    batch = build_batch(numbered([b"a", b"b"], timestamp=5), codec=1)

    stamp_append_time(memoryview(batch), 1234)

    header = peek_header(batch)
    assert header is not None
    assert header.is_log_append_time
    assert header.codec == 1
    assert header.max_timestamp == 1234
    assert crc_is_valid(batch)
    assert [record.timestamp for record in iter_records(batch)] == [1234, 1234]


@given(st.data())
def test_one_changed_bit_under_the_checksum_is_seen(data: st.DataObject) -> None:
    batch = build_batch(numbered([b"some", b"values"]))
    bit = data.draw(st.integers(17 * 8, len(batch) * 8 - 1))

    batch[bit // 8] ^= 1 << bit % 8

    assert not crc_is_valid(batch)
    seal(batch)
    assert crc_is_valid(batch)


def test_fewer_bytes_than_a_header_have_no_valid_checksum() -> None:
    assert not crc_is_valid(b"")
    assert not crc_is_valid(bytes(60))


def test_the_checksums_that_kafka_wrote_are_ours(kafka_batches: dict[str, list[bytes]]) -> None:
    batches = [batch for batches in kafka_batches.values() for batch in batches]

    assert len(batches) > 200
    for batch in batches:
        header = peek_header(batch)
        assert header is not None
        assert header.crc == compute_crc(batch)
