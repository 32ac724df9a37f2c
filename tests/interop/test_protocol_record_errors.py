"""Produce: timestamps and keys record by record, and what else is refused, on both engines."""

import struct
import time
from collections.abc import Callable, Sequence

import pytest
from tests.interop.wire import Engine, WireClient

from headrace.records.batch import LOG_APPEND_TIME_BIT, crc_is_valid, peek_header, seal
from headrace.records.builder import build_batch
from headrace.records.record import Record, iter_records

NONE, RECORD_LIST_TOO_LARGE, INVALID_TIMESTAMP, INVALID_RECORD = 0, 18, 32, 87
UNKNOWN_TOPIC, UNSUPPORTED_COMPRESSION_TYPE = 3, 76
ZSTD = 4
HOUR_MS = 3_600_000
NO_TIME = -1
_ATTRIBUTES, _BASE_TIMESTAMP, _MAX_TIMESTAMP = 21, 27, 35

NewTopic = Callable[..., str]
both_codecs = pytest.mark.parametrize("codec", [0, ZSTD], ids=["plain", "zstd"])


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def a_batch(
    times: Sequence[int], *, keyless: Sequence[int] = (), codec: int = 0, **header: int
) -> bytearray:
    """Records with these times; `max_timestamp=0` and the like change the header."""
    batch = build_batch(
        [
            Record(index, at, None if index in keyless else b"k", b"value", [])
            for index, at in enumerate(times)
        ],
        codec=codec,
    )
    for name, value in header.items():
        at, layout = {
            "attributes": (_ATTRIBUTES, ">h"),
            "base_timestamp": (_BASE_TIMESTAMP, ">q"),
            "max_timestamp": (_MAX_TIMESTAMP, ">q"),
        }[name]
        struct.pack_into(layout, batch, at, value)
    seal(batch)
    return batch


def refused(wire: WireClient, topic: str, batch: bytes, version: int = 9) -> tuple[int, list[int]]:
    """The error code, and which records are named; nothing may have been stored."""
    answer = wire.produce(topic, batch, version=version)
    assert answer.base_offset == -1
    assert not wire.fetch(topic, 0).records
    if version < 8:
        return int(answer.error_code), []
    for error in answer.record_errors:
        assert error.batch_index_error_message
    if answer.record_errors:
        assert answer.error_message
    return int(answer.error_code), [error.batch_index for error in answer.record_errors]


@both_codecs
@pytest.mark.parametrize("told", [-1, 0, 1, 2**62], ids=["none", "zero", "long ago", "far ahead"])
def test_the_largest_timestamp_is_taken_from_the_records(
    wire: WireClient, topic: str, told: int, codec: int
) -> None:
    now = now_ms()
    batch = a_batch([now, now + 7, now + 3], codec=codec, max_timestamp=told)

    assert wire.produce(topic, batch).error_code == NONE

    stored = wire.fetch(topic, 0).records
    head = peek_header(stored)
    assert head is not None
    assert (head.base_timestamp, head.max_timestamp) == (now, now + 7)
    assert crc_is_valid(stored)
    assert [record.timestamp for record in iter_records(stored)] == [now, now + 7, now + 3]
    found = wire.list_offset(topic, now + 5)
    assert (found.offset, found.timestamp) == (1, now + 7)


@both_codecs
def test_every_record_too_far_ahead_is_named(wire: WireClient, topic: str, codec: int) -> None:
    now = now_ms()
    times = [now, now + 2 * HOUR_MS, NO_TIME, now, now + 3 * HOUR_MS]

    assert refused(wire, topic, a_batch(times, codec=codec)) == (INVALID_TIMESTAMP, [1, 4])
    liar = a_batch(times, codec=codec, max_timestamp=now)
    assert refused(wire, topic, liar) == (INVALID_TIMESTAMP, [1, 4])


@both_codecs
def test_every_record_too_far_behind_is_named(
    wire: WireClient, new_topic: NewTopic, codec: int
) -> None:
    topic = new_topic(message_timestamp_before_max_ms=HOUR_MS)
    now = now_ms()
    times = [NO_TIME, -5, 0, now, now - 2 * HOUR_MS]

    assert refused(wire, topic, a_batch(times, codec=codec)) == (INVALID_TIMESTAMP, [1, 2, 4])


@both_codecs
@pytest.mark.parametrize("base", [2**63 - 1, 2**63 - 2, -(2**63)])
def test_times_that_overflow_are_out_of_range(
    wire: WireClient, topic: str, base: int, codec: int
) -> None:
    batch = a_batch([5, 6, 7], codec=codec, base_timestamp=base)

    assert refused(wire, topic, batch) == (INVALID_TIMESTAMP, [0, 1, 2])


@both_codecs
def test_negative_times_are_taken_and_counted_as_none(
    wire: WireClient, topic: str, codec: int
) -> None:
    assert wire.produce(topic, a_batch([-5, -7], codec=codec)).error_code == NONE

    head = peek_header(wire.fetch(topic, 0).records)
    assert head is not None
    assert (head.base_timestamp, head.max_timestamp) == (-5, NO_TIME)


@both_codecs
def test_every_record_without_a_key_is_named_on_a_compacted_topic(
    wire: WireClient, new_topic: NewTopic, codec: int
) -> None:
    topic = new_topic(cleanup_policy="compact")
    batch = a_batch([now_ms()] * 6, keyless=[1, 3, 4], codec=codec)

    assert refused(wire, topic, batch) == (INVALID_RECORD, [1, 3, 4])
    assert refused(wire, topic, batch, version=7) == (INVALID_RECORD, [])


@both_codecs
def test_one_wrong_time_among_missing_keys_decides_the_error(
    wire: WireClient, new_topic: NewTopic, codec: int
) -> None:
    topic = new_topic(cleanup_policy="compact")
    now = now_ms()
    times = [now, now + 2 * HOUR_MS, now, now, now, now + 2 * HOUR_MS]

    batch = a_batch(times, keyless=[1, 3], codec=codec)

    assert refused(wire, topic, batch) == (INVALID_TIMESTAMP, [1, 3, 5])


def test_a_broken_record_is_an_error_of_the_whole_batch(
    wire: WireClient, new_topic: NewTopic
) -> None:
    topic = new_topic(cleanup_policy="compact")
    batch = a_batch([now_ms()] * 3, keyless=[0])
    batch[-1] = 2  # one header, and then the batch ends
    seal(batch)

    assert refused(wire, topic, batch) == (INVALID_RECORD, [])


def test_of_many_bad_records_the_first_ten_thousand_are_named(
    wire: WireClient, new_topic: NewTopic, engine: Engine
) -> None:
    topic = new_topic(cleanup_policy="compact")
    batch = a_batch([now_ms()] * 12_000, keyless=range(12_000), codec=ZSTD)

    code, named = refused(wire, topic, batch)

    # Kafka names them all; with 100 MB of them, too.
    listed = {"kafka": 12_000, "headrace": 10_000}[engine.name]
    assert (code, named) == (INVALID_RECORD, list(range(listed)))


@both_codecs
def test_a_client_may_not_stamp_log_append_time(
    wire: WireClient, new_topic: NewTopic, codec: int
) -> None:
    topic = new_topic(message_timestamp_type="LogAppendTime")
    batch = a_batch([now_ms()] * 2, codec=codec, attributes=codec | LOG_APPEND_TIME_BIT)

    assert refused(wire, topic, batch) == (INVALID_TIMESTAMP, [0, 1])


@both_codecs
def test_nor_where_producers_stamp(wire: WireClient, topic: str, codec: int) -> None:
    batch = a_batch(
        [now_ms()] * 2, codec=codec, attributes=codec | LOG_APPEND_TIME_BIT, max_timestamp=NO_TIME
    )

    assert refused(wire, topic, batch) == (INVALID_TIMESTAMP, [0, 1])


def test_a_claimed_append_time_in_range_is_refused_too(
    wire: WireClient, topic: str, engine: Engine
) -> None:
    answer = wire.produce(topic, a_batch([now_ms()], attributes=LOG_APPEND_TIME_BIT))

    # Kafka takes the batch, believes its time and clears the bit.
    assert answer.error_code == {"kafka": NONE, "headrace": INVALID_TIMESTAMP}[engine.name]


def test_a_topic_that_stamps_takes_any_time(wire: WireClient, new_topic: NewTopic) -> None:
    topic = new_topic(message_timestamp_type="LogAppendTime", message_timestamp_before_max_ms=1)
    now = now_ms()

    assert wire.produce(topic, a_batch([0, now + 5 * HOUR_MS])).error_code == NONE

    head = peek_header(wire.fetch(topic, 0).records)
    assert head is not None
    assert now <= head.max_timestamp <= now_ms()


@pytest.mark.parametrize("version", [3, 6])
def test_zstd_before_version_7_is_refused(wire: WireClient, topic: str, version: int) -> None:
    batch = a_batch([now_ms()], codec=ZSTD)
    damaged = batch[:-1] + b"!"

    for sent in (batch, damaged):
        assert refused(wire, topic, sent, version=version)[0] == UNSUPPORTED_COMPRESSION_TYPE
    assert wire.produce("no-such-topic", batch, version=version).error_code == UNKNOWN_TOPIC
    assert wire.produce(topic, batch, version=7).error_code == NONE


@both_codecs
def test_a_batch_larger_than_a_segment_is_refused(
    wire: WireClient, new_topic: NewTopic, codec: int
) -> None:
    segment_bytes = 1024 * 1024
    topic = new_topic(segment_bytes=segment_bytes, max_message_bytes=4 * segment_bytes)
    value = bytes(range(256)) * 4096 if not codec else _noise(segment_bytes)
    batch = build_batch([Record(0, now_ms(), b"k", value, [])], codec=codec)
    assert len(batch) > segment_bytes
    ahead = build_batch([Record(0, now_ms() + 2 * HOUR_MS, b"k", value, [])], codec=codec)

    assert refused(wire, topic, batch) == (RECORD_LIST_TOO_LARGE, [])
    assert refused(wire, topic, ahead) == (INVALID_TIMESTAMP, [0])


def test_a_batch_as_large_as_a_segment_is_taken(wire: WireClient, new_topic: NewTopic) -> None:
    segment_bytes = 1024 * 1024
    topic = new_topic(segment_bytes=segment_bytes, max_message_bytes=4 * segment_bytes)
    overhead = (
        len(build_batch([Record(0, now_ms(), b"k", bytes(segment_bytes), [])])) - segment_bytes
    )
    value = bytes(segment_bytes - overhead)
    batch = build_batch([Record(0, now_ms(), b"k", value, [])])

    assert segment_bytes - 4 < len(batch) <= segment_bytes
    assert wire.produce(topic, batch).error_code == NONE


def _noise(size: int) -> bytes:
    """Bytes that no codec shortens."""
    state, out = 1, bytearray()
    while len(out) < size:
        state = state * 6364136223846793005 + 1442695040888963407 & (2**512 - 1)
        out += state.to_bytes(64, "big")
    return bytes(out[:size])
