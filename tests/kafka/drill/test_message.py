import zlib

from headrace.kafka.drill.message import (
    MIN_MESSAGE_BYTES,
    decode,
    encode,
    make_streams,
    padding,
)


def test_a_message_says_its_stream_and_number() -> None:
    value = encode(7, 123_456_789_012, padding(100))

    assert len(value) == 100
    assert decode(value) == (7, 123_456_789_012)


def test_a_message_has_its_size() -> None:
    for size in (MIN_MESSAGE_BYTES, 17, 271, 272, 273, 5000):
        assert len(encode(0, 0, padding(size))) == size


def test_what_is_not_of_a_drill_is_not_taken_for_it() -> None:
    assert decode(None) is None
    assert decode(b"short") is None
    assert decode(b"x" * 100) is None


def test_each_publisher_has_one_key_in_each_partition() -> None:
    streams = make_streams(3, 6)

    assert [stream.number for stream in streams] == list(range(18))
    assert len({stream.key for stream in streams}) == 18
    for stream in streams:
        assert zlib.crc32(stream.key) % 6 == stream.partition
    assert {(stream.publisher, stream.partition) for stream in streams} == {
        (publisher, partition) for publisher in range(3) for partition in range(6)
    }
