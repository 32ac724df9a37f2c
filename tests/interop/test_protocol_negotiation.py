"""Connections, versions and the order of answers, byte by byte, on both engines."""

import json
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.interop.wire import (
    API_VERSIONS,
    FETCH,
    LATEST,
    METADATA,
    PRODUCE,
    Engine,
    WireClient,
    batch_of,
    fetch_fields,
    produce_fields,
    request,
)

CAPTURES = Path(__file__).parents[1] / "data" / "kafka-4.3.1"
MIB = 1024 * 1024
UNSUPPORTED_VERSION, INVALID_REQUEST = 35, 42


def header(api_key: int, version: int, client_id: bytes | None = b"interop") -> bytes:
    """A request header v1 with correlation id 7."""
    start = struct.pack(">hhi", api_key, version, 7)
    if client_id is None:
        return start + struct.pack(">h", -1)
    return start + struct.pack(">h", len(client_id)) + client_id


def test_an_api_versions_request_from_the_future_is_answered_in_the_layout_of_v0(
    wire: WireClient,
) -> None:
    wire.send_frame(header(API_VERSIONS, 99) + b"\0 whatever the future holds")

    answer = wire.receive_frame()

    assert answer == struct.pack(">ihihhh", 7, UNSUPPORTED_VERSION, 1, API_VERSIONS, 0, 4)


def test_the_version_table_is_the_one_of_kafka_4_3_1(wire: WireClient, engine: Engine) -> None:
    captured = json.loads((CAPTURES / "api_versions.json").read_text())
    kafka = {key["key"]: (key["min"], key["max"]) for key in captured["api_keys"]}

    answer = wire.call(
        API_VERSIONS, 4, client_software_name="interop", client_software_version="1.0"
    )

    served = {key.api_key: (key.min_version, key.max_version) for key in answer.api_keys}
    assert answer.error_code == 0
    assert served == {key: versions for key, versions in kafka.items() if key in served}
    if engine.name == "kafka":
        assert served == kafka


@pytest.mark.parametrize("version", [3, 4])
def test_the_features_have_the_levels_of_kafka_4_3_1(
    wire: WireClient, engine: Engine, version: int
) -> None:
    captured = json.loads((CAPTURES / "api_versions.json").read_text())
    kafka_supports = {
        name: (levels["min_version"], levels["max_version"])
        for name, levels in captured["supported_features"].items()
        # Ranges that start at 0 are hidden from clients that cannot read them (KIP-1022).
        if version >= 4 or levels["min_version"] > 0
    }
    kafka_has = {
        name: levels["max_version_level"] for name, levels in captured["finalized_features"].items()
    }

    answer = wire.call(
        API_VERSIONS, version, client_software_name="interop", client_software_version="1.0"
    )

    supported = {
        each.name: (each.min_version, each.max_version) for each in answer.supported_features
    }
    finalized = {each.name: each.max_version_level for each in answer.finalized_features}
    if engine.name == "headrace":
        # No transactions, shares, streams, quorum: what is not there is not promised.
        assert finalized.keys() == {"metadata.version", "group.version"}
        kafka_has = {name: kafka_has[name] for name in finalized}
        kafka_supports = {
            name: kafka_supports[name] for name in finalized if name in kafka_supports
        }
    assert (supported, finalized) == (kafka_supports, kafka_has)


@pytest.mark.parametrize("version", range(5))
def test_every_version_of_api_versions_lists_the_same_apis(wire: WireClient, version: int) -> None:
    software = {"client_software_name": "interop", "client_software_version": "1.0"}

    answer = wire.call(API_VERSIONS, version, **(software if version >= 3 else {}))

    # Feature ranges that start at 0 may be shown from v4 on only (KIP-1022).
    assert {PRODUCE, FETCH, METADATA, API_VERSIONS} <= {key.api_key for key in answer.api_keys}
    if version == 3:
        assert all(feature.min_version > 0 for feature in answer.supported_features)


@pytest.mark.parametrize("name", ["", "two words", "-dash", "semi;colon"])
def test_a_client_software_name_kafka_does_not_like_is_an_invalid_request(
    wire: WireClient, name: str
) -> None:
    answer = wire.call(API_VERSIONS, 3, client_software_name=name, client_software_version="1.0")

    assert answer.error_code == INVALID_REQUEST


def test_a_client_without_an_id_is_served(wire: WireClient) -> None:
    wire.send_frame(header(METADATA, 1, client_id=None) + struct.pack(">i", 0))

    answer = wire.receive_frame()

    assert answer is not None
    assert answer[:4] == struct.pack(">i", 7)


def test_tagged_fields_nobody_knows_are_skipped(wire: WireClient) -> None:
    # Two tags in the header, one in the body: number, length, content.
    tags = b"\x02" + b"\x63\x03abc" + b"\x64\x00"
    body = b"\x01" + b"\x00\x00" + b"\x01" + b"\x63\x01z"
    wire.send_frame(header(METADATA, 12) + tags + body)

    answer = wire.receive_frame()

    assert answer is not None
    assert answer[:5] == struct.pack(">ib", 7, 0)


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(header(PRODUCE, 2), id="Produce v2, advertised but refused (KAFKA-18659)"),
        pytest.param(header(PRODUCE, 14), id="Produce from the future"),
        pytest.param(header(FETCH, 3), id="Fetch of before Kafka 4"),
        pytest.param(header(1234, 0), id="an API nobody knows"),
        pytest.param(header(-1, 0), id="a negative API key"),
        pytest.param(b"\0\x03\0", id="less than a header"),
        pytest.param(header(METADATA, 1), id="a header without its body"),
        pytest.param(struct.pack(">hhih", 3, 1, 7, 5000), id="a client id longer than the frame"),
        pytest.param(header(METADATA, 1) + struct.pack(">i", 2**31 - 1), id="an absurd count"),
    ],
)
def test_a_frame_that_cannot_be_read_closes_the_connection(wire: WireClient, frame: bytes) -> None:
    wire.send_frame(frame)

    assert wire.receive_frame() is None


@pytest.mark.parametrize("length", [100 * MIB + 1, 2**31 - 1, -1, -(2**31)])
def test_an_absurd_frame_length_closes_the_connection(wire: WireClient, length: int) -> None:
    wire.send_bytes(struct.pack(">i", length) + header(METADATA, 1))

    assert wire.receive_frame() is None


def test_answers_come_in_the_order_of_the_requests(
    wire: WireClient, topic: str, engine: Engine
) -> None:
    # The fetch waits for a message; the metadata behind it is ready at once, and waits too.
    wire.send(request(FETCH, 12, **fetch_fields({topic: 0}, max_wait=20_000, min_bytes=1)))
    wire.send(request(METADATA, 1, topics=[{"name": topic}]))
    with WireClient(engine.bootstrap) as other:
        assert other.produce(topic, batch_of(1)).error_code == 0

    fetched = wire.receive()
    metadata = wire.receive()

    assert fetched.responses[0].partitions[0].high_watermark == 1
    assert metadata.topics[0].name == topic


def test_many_requests_in_one_write_are_all_answered(wire: WireClient, topic: str) -> None:
    for _ in range(100):
        wire.send(request(PRODUCE, 9, **produce_fields(topic, batch_of(1), acks=1)))
    offsets = [wire.receive().responses[0].partition_responses[0].base_offset for _ in range(100)]

    assert offsets == list(range(100))


def test_acks_0_gets_no_answer(wire: WireClient, topic: str) -> None:
    wire.send(request(PRODUCE, 9, **produce_fields(topic, batch_of(3), acks=0)), is_answered=False)

    # `receive` checks that this answer, not one to Produce, comes next.
    assert wire.list_offset(topic, LATEST).offset == 3


def test_acks_0_with_an_error_closes_the_connection(
    wire: WireClient, new_topic: Callable[..., str]
) -> None:
    compacted = new_topic(cleanup_policy="compact")
    keyless = batch_of(1, key=None)

    wire.send(request(PRODUCE, 9, **produce_fields(compacted, keyless, acks=0)), is_answered=False)

    # The only way left to tell the producer that its metadata may be old.
    assert wire.receive_frame() is None
