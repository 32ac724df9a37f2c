import struct
from uuid import UUID

from kio.schema.fetch.v16.request import FetchRequest
from kio.schema.produce.v10.request import ProduceRequest
from kio.schema.request_header.v2.header import RequestHeader
from kio.serial import entity_reader

from bench.requests import write_fetch_requests, write_produce_requests
from headrace.records.batch import crc_is_valid, peek_header


def entries(path):
    """Yield (messages, batch bytes, offset position, frame) of a request file."""
    content = path.read_bytes()
    assert content[:4] == b"HRQ1"
    at = 4
    while at < len(content):
        size, messages, batch_bytes, offset_position = struct.unpack_from("<IIII", content, at)
        yield messages, batch_bytes, offset_position, content[at + 16 : at + 16 + size]
        at += 16 + size


def decode(frame, entity_type):
    assert struct.unpack_from(">i", frame)[0] == len(frame) - 4
    _, header_bytes = entity_reader(RequestHeader)(frame, 4)
    entity, body_bytes = entity_reader(entity_type)(frame, 4 + header_bytes)
    assert 4 + header_bytes + body_bytes == len(frame)
    return entity


def test_produce_requests_are_one_valid_batch_for_each_partition(tmp_path):
    batch_bytes = write_produce_requests(
        tmp_path / "f", topic="t", partitions=3, value_bytes=10, messages=7, acks=-1
    )

    written = list(entries(tmp_path / "f"))
    assert [entry[:2] for entry in written] == [(7, batch_bytes)] * 3
    for partition, (*_, frame) in enumerate(written):
        request = decode(frame, ProduceRequest)
        (topic,) = request.topic_data
        (data,) = topic.partition_data
        header = peek_header(data.records)
        assert (request.acks, topic.name, data.index) == (-1, "t", partition)
        assert (header.record_count, header.producer_id, header.size) == (7, -1, batch_bytes)
        assert crc_is_valid(data.records)


def test_the_fetch_offset_is_where_the_file_says(tmp_path):
    topic_id = UUID(int=7)
    write_fetch_requests(tmp_path / "f", topic_id=topic_id, partitions=2)

    for partition, (_, _, position, frame) in enumerate(entries(tmp_path / "f")):
        patched = frame[:position] + struct.pack(">q", 42) + frame[position + 8 :]
        (topic,) = decode(patched, FetchRequest).topics
        (wanted,) = topic.partitions
        assert topic.topic_id == topic_id
        assert (wanted.partition, wanted.fetch_offset) == (partition, 42)
