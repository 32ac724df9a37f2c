"""Produce is read and written by hand; kio, generated from Kafka's schemas, is the judge."""

import dataclasses
import io
import uuid
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.index import load_payload_module
from kio.serial import entity_reader, entity_writer
from kio.static.constants import EntityType

from headrace.protocol import produce
from headrace.protocol.errors import WireError
from headrace.protocol.produce import PartitionResult

VERSIONS = range(3, 14)
TOPIC_ID = uuid.UUID("01234567-89ab-cdef-0123-456789abcdef")


def request_bytes(version: int, topics: list[tuple[str, list[tuple[int, bytes | None]]]]) -> bytes:
    module = load_payload_module(0, version, EntityType.request)
    request = module.ProduceRequest(
        transactional_id=None,
        acks=-1,
        timeout=timedelta(milliseconds=1500),
        topic_data=tuple(
            module.TopicProduceData(
                **({"topic_id": TOPIC_ID} if version >= 13 else {"name": name}),
                partition_data=tuple(
                    module.PartitionProduceData(index=index, records=records)
                    for index, records in partitions
                ),
            )
            for name, partitions in topics
        ),
    )
    out = io.BytesIO()
    entity_writer(module.ProduceRequest)(out, request)
    return out.getvalue()


@pytest.mark.parametrize("version", VERSIONS)
def test_a_request_of_every_version_is_read(version: int) -> None:
    body = request_bytes(version, [("orders", [(0, b"x" * 300), (3, b"yy")]), ("b", [(1, None)])])

    request = produce.read_request(body, 0, len(body), version)

    assert (request.acks, request.timeout_ms, request.transactional_id) == (-1, 1500, None)
    (first, spans), (_, others) = request.topics
    assert first == (TOPIC_ID.bytes if version >= 13 else b"orders")
    assert [(s.partition, body[s.start : s.end]) for s in spans] == [(0, b"x" * 300), (3, b"yy")]
    assert others[0].start == -1


@pytest.mark.parametrize("version", VERSIONS)
def test_kio_reads_the_response_of_every_version(version: int) -> None:
    topic = TOPIC_ID.bytes if version >= 13 else b"orders"
    results = [
        PartitionResult(0, 0, 41, -1, 5),
        PartitionResult(2, 87, -1, -1, 5, "no keys", [(3, "no key"), (5, "no key"), (6, "else")]),
    ]

    frame_bytes = produce.write_response(version, 99, [(topic, results)])

    size, correlation = frame_bytes[:4], frame_bytes[4:8]
    assert int.from_bytes(size, "big") == len(frame_bytes) - 4
    assert int.from_bytes(correlation, "big") == 99
    module = load_payload_module(0, version, EntityType.response)
    body = frame_bytes[9:] if version >= 9 else frame_bytes[8:]
    response, used = entity_reader(module.ProduceResponse)(body, 0)
    assert used == len(body)
    good, bad = response.responses[0].partition_responses
    assert (good.index, int(good.error_code), good.base_offset) == (0, 0, 41)
    assert (bad.index, int(bad.error_code)) == (2, 87)
    if version >= 5:
        assert good.log_start_offset == 5
    if version >= 8:
        assert bad.error_message == "no keys"
        assert [(e.batch_index, e.batch_index_error_message) for e in bad.record_errors] == [
            (3, "no key"),
            (5, "no key"),
            (6, "else"),
        ]


@given(st.sampled_from([3, 8, 9, 13]), st.data())
def test_a_truncated_request_is_always_a_wire_error(version: int, data: st.DataObject) -> None:
    body = request_bytes(version, [("orders", [(0, b"x" * 30), (1, b"y")])])
    cut = data.draw(st.integers(0, len(body) - 1))

    with pytest.raises(WireError):
        produce.read_request(body, 0, cut, version)


@given(st.binary(max_size=200), st.sampled_from([3, 9, 13]))
def test_random_bytes_are_read_or_refused_as_wire_error(body: bytes, version: int) -> None:
    try:
        request = produce.read_request(body, 0, len(body), version)
    except WireError:
        return
    assert dataclasses.is_dataclass(request) or isinstance(request, tuple)
