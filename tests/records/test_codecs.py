import gzip

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.records.codecs import Codec, compress, decompress
from headrace.records.errors import UndecodableRecordsError

COMPRESSING = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]


@pytest.mark.parametrize("codec", Codec)
@given(st.binary(max_size=2000), st.integers(1, 200))
def test_what_was_compressed_comes_back(codec: Codec, data: bytes, repeats: int) -> None:
    assert bytes(decompress(codec, compress(codec, data * repeats))) == data * repeats


@pytest.mark.parametrize("codec", COMPRESSING)
def test_output_grows_far_beyond_the_first_guess(codec: Codec) -> None:
    data = bytes(5_000_000)

    assert bytes(decompress(codec, memoryview(compress(codec, data)))) == data


@pytest.mark.parametrize("codec", COMPRESSING)
def test_a_bomb_is_refused(codec: Codec) -> None:
    bomb = compress(codec, bytes(1_000_001))

    assert len(decompress(codec, bomb, max_bytes=1_000_001)) == 1_000_001
    with pytest.raises(UndecodableRecordsError, match="1000000 bytes"):
        decompress(codec, bomb, max_bytes=1_000_000)


@pytest.mark.parametrize("codec", COMPRESSING)
@given(data=st.binary(max_size=60))
def test_plain_bytes_are_not_mistaken_for_compressed_ones(codec: Codec, data: bytes) -> None:
    plain = b"\x03plain" + data  # as a raw snappy block this claims three bytes

    with pytest.raises(UndecodableRecordsError):
        decompress(codec, plain)


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4, Codec.ZSTD])
def test_garbage_is_not_tried_again_with_more_room(
    codec: Codec, monkeypatch: pytest.MonkeyPatch
) -> None:
    rooms = []

    def counting_bytearray(room: int) -> bytearray:
        rooms.append(room)
        return bytearray(room)

    monkeypatch.setattr("headrace.records.codecs.bytearray", counting_bytearray, raising=False)
    with pytest.raises(UndecodableRecordsError):
        decompress(codec, b"twenty bytes of text")

    assert rooms == [4096]


@pytest.mark.parametrize("codec", COMPRESSING)
def test_a_cut_stream_is_refused(codec: Codec) -> None:
    whole = compress(codec, b"".join(b"%d" % number for number in range(1000)))

    for end in range(0, len(whole), 7):
        with pytest.raises(UndecodableRecordsError):
            decompress(codec, whole[:end])


@pytest.mark.parametrize("codec", COMPRESSING)
@given(data=st.data())
def test_a_damaged_stream_gives_bytes_or_our_error(codec: Codec, data: st.DataObject) -> None:
    stream = bytearray(compress(codec, b"a message and another message" * 20))
    for _ in range(3):
        stream[data.draw(st.integers(0, len(stream) - 1))] = data.draw(st.integers(0, 255))

    try:
        size = len(decompress(codec, stream, max_bytes=100_000))
    except UndecodableRecordsError:
        return
    assert size <= 100_000


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_a_codec_that_does_not_exist_is_refused(codec: int) -> None:
    with pytest.raises(UndecodableRecordsError, match=f"number {codec}"):
        decompress(codec, b"anything")
    with pytest.raises(ValueError, match=f"number {codec}"):
        compress(codec, b"anything")


def test_a_gzip_stream_may_have_several_members() -> None:
    assert bytes(decompress(Codec.GZIP, gzip.compress(b"one") + gzip.compress(b"two"))) == b"onetwo"


def test_raw_snappy_is_read_as_well_as_framed() -> None:
    assert bytes(decompress(Codec.SNAPPY, bytes(cramjam.snappy.compress_raw(b"raw")))) == b"raw"


def test_snappy_is_framed_in_blocks_as_java_does() -> None:
    framed = compress(Codec.SNAPPY, bytes(range(256)) * 256)

    assert framed[:16] == b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01"
    first_block = int.from_bytes(framed[16:20], "big")
    second_block = int.from_bytes(framed[20 + first_block : 24 + first_block], "big")
    assert len(framed) == 24 + first_block + second_block
    assert cramjam.snappy.decompress_raw_len(framed[20 : 20 + first_block]) == 32 * 1024


@pytest.mark.parametrize("length", [-1, 0, 2**31 - 1])
def test_a_snappy_block_of_an_impossible_length_is_refused(length: int) -> None:
    framed = compress(Codec.SNAPPY, b"data")
    hostile = framed[:16] + length.to_bytes(4, "big", signed=True) + framed[20:]

    with pytest.raises(UndecodableRecordsError, match=f"block of {length} bytes"):
        decompress(Codec.SNAPPY, hostile)


def test_lz4_blocks_stand_alone_because_java_refuses_others() -> None:
    flags = compress(Codec.LZ4, b"data" * 100_000)[4]

    assert flags >> 6 == 1
    assert flags & 0x20
