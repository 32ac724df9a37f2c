import warnings
from typing import Any

import pytest
from aiokafka.record.memory_records import MemoryRecords as AiokafkaRecords
from hypothesis import given
from hypothesis import strategies as st

from headrace.config import LogConfig
from headrace.records.batch import crc_is_valid, peek_header
from headrace.records.builder import build_batch, numbered
from headrace.records.codecs import Codec
from headrace.records.record import Record, iter_records
from headrace.records.validation import check_for_append

with warnings.catch_warnings():
    # kafka-python loads its schemas through a function that Python 3.11 deprecates.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.record.memory_records import MemoryRecords as KafkaPythonRecords

data = st.none() | st.binary(max_size=40)
timestamps = st.integers(0, 2**42)
headers = st.lists(st.tuples(st.text(max_size=8), data), max_size=3)


@st.composite
def record_lists(draw: st.DrawFn) -> list[Record]:
    """Records whose offsets ascend, with gaps as compaction leaves them."""
    offset = draw(st.integers(0, 2**40))
    records = []
    for _ in range(draw(st.integers(1, 6))):
        records.append(Record(offset, draw(timestamps), draw(data), draw(data), draw(headers)))
        offset += draw(st.integers(1, 1000))
    return records


@given(record_lists(), st.sampled_from(Codec))
def test_what_was_built_is_read_back(records: list[Record], codec: Codec) -> None:
    batch = build_batch(records, codec=codec)

    assert crc_is_valid(batch)
    assert list(iter_records(batch)) == records


def seen_by(reader: Any, batch: bytearray) -> list[Record]:
    """The records as another project's parser reads them."""
    foreign = reader(bytes(batch)).next_batch()
    assert foreign.validate_crc()
    return [
        Record(record.offset, record.timestamp, record.key, record.value, list(record.headers))
        for record in foreign
    ]


# kafka-python needs a library of its own for each of the other codecs.
@given(record_lists(), st.sampled_from([Codec.NONE, Codec.GZIP]))
def test_kafka_python_reads_what_was_built(records: list[Record], codec: Codec) -> None:
    assert seen_by(KafkaPythonRecords, build_batch(records, codec=codec)) == records


@given(record_lists(), st.sampled_from(Codec))
def test_aiokafka_reads_what_was_built(records: list[Record], codec: Codec) -> None:
    assert seen_by(AiokafkaRecords, build_batch(records, codec=codec)) == records


def test_the_base_offset_moves_all_records() -> None:
    batch = build_batch(numbered([b"a", b"b"]), base_offset=70)

    assert [record.offset for record in iter_records(batch)] == [70, 71]


def test_producer_and_flags_reach_the_header() -> None:
    batch = build_batch(
        numbered([b"a", b"b"], timestamp=8),
        producer_id=5,
        producer_epoch=2,
        base_sequence=30,
        is_transactional=True,
        is_control=True,
        leader_epoch=4,
        codec=Codec.LZ4,
    )

    header = peek_header(batch)
    assert header is not None
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (5, 2, 30)
    assert header.is_transactional
    assert header.is_control
    assert (header.leader_epoch, header.codec, header.size) == (4, 3, len(batch))
    assert (header.base_timestamp, header.max_timestamp) == (8, 8)


def test_the_header_holds_the_largest_timestamp() -> None:
    records = [Record(offset, time, None, b"", []) for offset, time in enumerate([5, 9, 2])]

    header = peek_header(build_batch(records))

    assert header is not None
    assert (header.base_timestamp, header.max_timestamp) == (5, 9)


@given(st.lists(data, min_size=1, max_size=5), st.sampled_from(Codec))
def test_what_was_built_may_be_appended(values: list[bytes | None], codec: Codec) -> None:
    batch = build_batch(numbered(values, key=b"k"), codec=codec)

    config = LogConfig(max_message_bytes=10_000, is_compacted=True, is_log_append_time=True)
    header = check_for_append(memoryview(batch), config, 0)

    assert header == peek_header(batch)


def test_a_batch_needs_records_in_order() -> None:
    with pytest.raises(ValueError, match="at least one"):
        build_batch([])
    with pytest.raises(ValueError, match="offset 3 does not follow 3"):
        build_batch([*numbered([b"a"], first_offset=3), *numbered([b"b"], first_offset=3)])
