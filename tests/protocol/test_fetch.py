"""Fetch is read and written by hand; kio, generated from Kafka's schemas, is the judge."""

import io
import uuid
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.index import load_payload_module
from kio.serial import entity_reader, entity_writer
from kio.static.constants import EntityType

from headrace.protocol import fetch
from headrace.protocol.errors import TooManyElementsError, WireError
from headrace.protocol.fetch import FetchLayout, FetchPartition, PartitionHead

VERSIONS = range(4, 19)
TOPIC_ID = uuid.UUID("01234567-89ab-cdef-0123-456789abcdef")


def only_known(kind: type, **values: object) -> object:
    return kind(**{name: value for name, value in values.items() if name in kind.__slots__})


def request_bytes(version: int) -> bytes:
    module = load_payload_module(1, version, EntityType.request)
    partition = only_known(
        module.FetchPartition,
        partition=3,
        current_leader_epoch=5,
        fetch_offset=1234567890123,
        last_fetched_epoch=-1,
        log_start_offset=-1,
        partition_max_bytes=4096,
    )
    topic = only_known(
        module.FetchTopic, topic="orders", topic_id=TOPIC_ID, partitions=(partition,)
    )
    values: dict[str, object] = {
        "replica_id": -1,
        "max_wait": timedelta(milliseconds=500),
        "min_bytes": 1,
        "max_bytes": 1 << 20,
        "isolation_level": 1,
        "session_id": 77,
        "session_epoch": 2,
        "topics": (topic,),
        "rack_id": "r1",
    }
    if version >= 7:
        values["forgotten_topics_data"] = (
            only_known(module.ForgottenTopic, topic="old", topic_id=TOPIC_ID, partitions=(1, 2)),
        )
    out = io.BytesIO()
    request = only_known(module.FetchRequest, **values)
    entity_writer(module.FetchRequest)(out, request)
    return out.getvalue()


@pytest.mark.parametrize("version", VERSIONS)
def test_a_request_of_every_version_is_read(version: int) -> None:
    body = request_bytes(version)

    request = fetch.read_request(body, 0, len(body), version)

    assert request[:4] == (500, 1, 1 << 20, 1)
    assert (request.session_id, request.session_epoch) == ((77, 2) if version >= 7 else (0, -1))
    name, old = (TOPIC_ID.bytes, TOPIC_ID.bytes) if version >= 13 else (b"orders", b"old")
    epoch = 5 if version >= 9 else -1
    assert request.topics == [(name, [FetchPartition(3, epoch, 1234567890123, 4096)])]
    assert request.forgotten == ([(old, [1, 2])] if version >= 7 else [])


@pytest.mark.parametrize("version", VERSIONS)
def test_kio_reads_the_response_of_every_version(version: int) -> None:
    layout = FetchLayout.of(version)
    topic = TOPIC_ID.bytes if version >= 13 else b"orders"
    body = layout.head(0, 42, 1) + layout.topic_head(topic, 2)
    body += layout.partition_head(PartitionHead(0, 0, 10, 9, 2), 300) + b"r" * 300
    body += layout.partition_tail
    body += layout.partition_head(PartitionHead(1, 3, -1, -1, -1), 0) + layout.partition_tail
    body += layout.topic_tail + layout.tail

    module = load_payload_module(1, version, EntityType.response)
    response, used = entity_reader(module.FetchResponse)(body, 0)

    assert used == len(body)
    first, second = response.responses[0].partitions
    assert (first.partition_index, first.high_watermark, first.last_stable_offset) == (0, 10, 9)
    assert first.records == b"r" * 300
    assert int(second.error_code) == 3
    assert not second.records
    if version >= 7:
        assert response.session_id == 42
    frame_head = layout.frame_head(9, len(body))
    assert int.from_bytes(frame_head[:4], "big") == len(frame_head) - 4 + len(body)


@given(st.sampled_from(VERSIONS), st.data())
def test_a_truncated_request_is_always_a_wire_error(version: int, data: st.DataObject) -> None:
    body = request_bytes(version)
    cut = data.draw(st.integers(0, len(body) - 1))

    with pytest.raises(WireError):
        fetch.read_request(body, 0, cut, version)


@given(st.binary(max_size=200), st.sampled_from([4, 7, 11, 12, 13, 18]))
def test_random_bytes_are_read_or_refused_as_wire_error(body: bytes, version: int) -> None:
    try:
        request = fetch.read_request(body, 0, len(body), version)
    except WireError:
        return
    assert request.topics is not None


def many_partitions(version: int, count: int, *, announced: int | None = None) -> bytes:
    """A request for `count` partitions of one topic, by hand: kio would take minutes."""
    is_flexible = version >= 12
    said = count if announced is None else announced
    length = fetch.write_array_length(said, is_compact=is_flexible)
    one = b"\0" * fetch._PARTITION_OF_VERSION[version].size + (b"\0" if is_flexible else b"")
    topic = b"t" * 16 if version >= 13 else fetch.write_string(b"t", is_compact=is_flexible)
    body = b"" if version >= 15 else b"\xff" * 4
    body += b"\0" * 13 + (b"\0" * 8 if version >= 7 else b"")
    body += fetch.write_array_length(1, is_compact=is_flexible) + topic + length + one * count
    if is_flexible:
        body += b"\0"
    if version >= 7:
        body += fetch.write_array_length(0, is_compact=is_flexible)
    if version >= 11:
        body += b"\1" if is_flexible else b"\0\0"
    return body + (b"\0" if is_flexible else b"")


def run_steps(body: bytes, version: int, limit: int) -> tuple[int, fetch.FetchRequest]:
    steps = fetch.read_steps(body, 0, len(body), version, limit)
    taken = 0
    while True:
        try:
            next(steps)
        except StopIteration as done:
            return taken, done.value
        taken += 1


@pytest.mark.parametrize("version", VERSIONS)
def test_a_long_request_is_read_in_steps_and_a_short_one_in_none(version: int) -> None:
    steps, request = run_steps(many_partitions(version, 5000), version, 5001)
    assert len(request.topics[0][1]) == 5000
    assert steps == 5001 // fetch.STEP_ELEMENTS

    steps, _ = run_steps(many_partitions(version, 50), version, 51)
    assert steps == 0


@pytest.mark.parametrize("version", VERSIONS)
def test_more_elements_than_allowed_are_refused_at_their_count_before_any_is_read(
    version: int,
) -> None:
    # The count promises a million; there are as many bytes, and not one whole partition.
    body = many_partitions(version, 0, announced=1_000_000) + b"\xff" * 1_000_000

    with pytest.raises(TooManyElementsError) as refused:
        run_steps(body, version, 20_000)

    assert refused.value.limit == 20_000


def test_topics_without_partitions_and_forgotten_ones_count_too() -> None:
    start = b"\0" * 17 + b"\0" * 8
    topics = b"\0\0\0\xc8" + (b"\0\1t" + b"\0" * 4) * 200
    none = b"\0" * 4
    forgotten = b"\0\0\0\1" + b"\0\1t" + b"\0\0\0\xc8" + b"\0" * 800
    for body in (start + topics + none, start + none + forgotten):
        assert run_steps(body, 7, 201)[0] == 0
        with pytest.raises(TooManyElementsError):
            run_steps(body, 7, 199)


def test_thousands_of_topics_are_read_in_steps() -> None:
    start = b"\0" * 17 + b"\0" * 8
    one = b"\0\1t" + b"\0\0\0\1" + b"\0" * 24
    body = start + b"\0\0\x13\x88" + one * 2500 + (b"\0\1t" + b"\0" * 4) * 2500 + b"\0" * 4

    steps, request = run_steps(body, 7, 10_000)

    assert steps >= 7500 // fetch.STEP_ELEMENTS - 1
    assert [len(partitions) for _, partitions in request.topics] == [1] * 2500 + [0] * 2500


def test_a_structure_of_endless_tagged_fields_is_refused() -> None:
    body = many_partitions(12, 1)[:-1] + b"\xc0\x84\x3d" + b"\0\0" * 1_000_000

    with pytest.raises(WireError, match="tagged fields"):
        fetch.read_request(body, 0, len(body), 12)
