import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.protocol import produce
from headrace.protocol.primitives import INT16, INT32, write_array_length, write_string
from headrace.protocol.produce import PartitionResult
from headrace.protocol.produce_shape import MAX_SHAPES, ProduceShapes

VERSIONS = range(3, 14)
Target = tuple[bytes, int, bytes]


def frame(
    version: int, *targets: Target, correlation_id: int = 7, acks: int = 1, tags: bytes = b"\0"
) -> tuple[bytearray, int]:
    """A request as it lies in the receive buffer without its size, and where its body starts."""
    is_compact = version >= 9
    head = INT16.pack(0) + INT16.pack(version) + INT32.pack(correlation_id) + b"\x00\x03cli"
    head += b"\0" if is_compact else b""
    body = (b"\0" if is_compact else b"\xff\xff") + INT16.pack(acks) + INT32.pack(1500)
    body += write_array_length(len(targets), is_compact=is_compact)
    for topic, partition, batch in targets:
        body += (
            topic.ljust(16, b"_") if version >= 13 else write_string(topic, is_compact=is_compact)
        )
        body += write_array_length(1, is_compact=is_compact) + INT32.pack(partition)
        body += write_array_length(len(batch), is_compact=is_compact) + batch
        body += tags + b"\0" if is_compact else b""
    body += b"\0" if is_compact else b""
    return bytearray(head + body), len(head)


def learned(version: int, *frames: tuple[bytearray, int]) -> ProduceShapes:
    shapes = ProduceShapes()
    for buffer, body in frames:
        request = produce.read_request(buffer, body, len(buffer), version)
        shapes.learn(buffer, 0, len(buffer), version, request)
    return shapes


@pytest.mark.parametrize("version", VERSIONS)
def test_the_next_batch_for_any_partition_of_the_topic_is_found(version: int) -> None:
    shapes = learned(version, frame(version, (b"orders", 4, b"x" * 100)))
    second, _ = frame(version, (b"orders", 9, b"z" * 20_000), correlation_id=8)

    found = shapes.match(second, 0, len(second))

    assert found is not None
    _, correlation_id, partition, start, end = found
    assert (correlation_id, partition) == (8, 9)
    assert second[start:end] == b"z" * 20_000


@pytest.mark.parametrize("version", VERSIONS)
def test_the_answer_equals_the_one_written_field_by_field(version: int) -> None:
    first, body = frame(version, (b"orders", 4, b"x" * 100))
    found = learned(version, (first, body)).match(first, 0, len(first))

    assert found is not None
    answer = found[0].write_success(2, 4, 17, -1, 3)

    topic = b"orders".ljust(16, b"_") if version >= 13 else b"orders"
    expected = produce.write_response(version, 2, [(topic, [PartitionResult(4, 0, 17, -1, 3)])])
    assert answer == expected


@pytest.mark.parametrize("version", [7, 9, 13])
@pytest.mark.parametrize(
    "other",
    [
        [(b"others", 4, b"x")],
        [(b"longer name", 4, b"x")],
        [(b"orders", 4, b"x"), (b"orders", 5, b"x")],
        [(b"orders", 4, b"")],
    ],
)
def test_another_topic_or_form_does_not_match(version: int, other: list[Target]) -> None:
    shapes = learned(version, frame(version, (b"orders", 4, b"x" * 100)))
    buffer, _ = frame(version, *other)

    assert shapes.match(buffer, 0, len(buffer)) is None


def test_another_version_or_acks_does_not_match() -> None:
    shapes = learned(9, frame(9, (b"orders", 4, b"x" * 100)))
    for buffer, _ in (
        frame(10, (b"orders", 4, b"x")),
        frame(9, (b"orders", 4, b"x"), acks=-1),
    ):
        assert shapes.match(buffer, 0, len(buffer)) is None


def test_a_request_with_tagged_fields_is_left_to_the_full_reader() -> None:
    first, body = frame(9, (b"orders", 4, b"x" * 100), tags=b"\x01\x05\x01z")

    shapes = learned(9, (first, body))

    assert shapes.match(first, 0, len(first)) is None


def test_several_topics_are_known_at_a_time() -> None:
    topics = [b"a", b"bb", b"ccc"]
    shapes = learned(9, *(frame(9, (topic, 0, b"x")) for topic in topics))

    for topic in topics:
        buffer, _ = frame(9, (topic, 1, b"batch"))
        found = shapes.match(buffer, 0, len(buffer))
        assert found is not None
        assert found[0].topic == topic


def test_many_topics_do_not_fill_the_memory() -> None:
    frames = [frame(9, (b"t%d" % at, 0, b"x")) for at in range(10 * MAX_SHAPES)]

    shapes = learned(9, *frames)

    assert sum(shapes.match(buffer, 0, len(buffer)) is not None for buffer, _ in frames) <= (
        MAX_SHAPES
    )


@given(st.sampled_from([3, 9, 13]), st.data())
def test_a_truncated_request_is_never_taken_for_a_whole_one(
    version: int, data: st.DataObject
) -> None:
    buffer, body = frame(version, (b"orders", 4, b"x" * 50))
    shapes = learned(version, (buffer, body))
    cut = data.draw(st.integers(10, len(buffer) - 1))

    assert shapes.match(buffer, 0, cut) is None
