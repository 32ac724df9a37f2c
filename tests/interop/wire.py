"""A Kafka client that sends exactly what it is told: kio's types in, kio's types out."""

import dataclasses
import io
import socket
import struct
import time
import types
import typing
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, NamedTuple, Self

from kio.index import load_request_schema, load_response_schema
from kio.serial import entity_reader, entity_writer

from headrace.records.builder import build_batch, numbered
from headrace.records.record import Record

PRODUCE, FETCH, LIST_OFFSETS, METADATA, API_VERSIONS = 0, 1, 2, 3, 18
CREATE_TOPICS, DELETE_TOPICS, DELETE_RECORDS, INIT_PRODUCER_ID = 19, 20, 21, 22
OFFSET_FOR_LEADER_EPOCH, DESCRIBE_CONFIGS, ALTER_CONFIGS = 23, 32, 33
DESCRIBE_LOG_DIRS, CREATE_PARTITIONS, INCREMENTAL_ALTER_CONFIGS = 35, 37, 44
DESCRIBE_CLUSTER, LIST_CONFIG_RESOURCES, DESCRIBE_TOPIC_PARTITIONS = 60, 74, 75

EARLIEST, LATEST, MAX_TIMESTAMP = -2, -1, -3
T0 = 1_700_000_000_000
# Ends what hangs; a broker on a machine with much else to do may take its time.
_ANSWER_TIMEOUT_S = 120


class Engine(NamedTuple):
    """What the suite is run against."""

    name: str
    bootstrap: str
    # Lets so many seconds pass for groups: at once where the clock can be moved, else by waiting.
    pass_time: Callable[[float], None] = time.sleep


def request(api_key: int, version: int, **fields: Any) -> Any:
    """Build a request from plain values: dicts for nested parts, numbers for milliseconds."""
    return _build(load_request_schema(api_key, version), fields)


def _build(schema: Any, fields: dict[str, Any]) -> Any:
    hints = typing.get_type_hints(schema)
    kinds = {
        field.name: field.metadata.get("kafka_type", "") for field in dataclasses.fields(schema)
    }
    return schema(
        **{name: _convert(hints[name], kinds[name], value) for name, value in fields.items()}
    )


def _convert(hint: Any, kind: str, value: Any) -> Any:
    if isinstance(value, dict):
        return _build(entity_in(hint), value)
    if isinstance(value, list | tuple):
        return tuple(_convert(hint, kind, item) for item in value)
    if kind.startswith("timedelta"):
        return timedelta(milliseconds=value)
    return value


def entity_in(hint: Any) -> Any:
    """Find the one entity in `Entity`, `tuple[Entity, ...]` or either `| None`."""
    if typing.get_origin(hint) in (tuple, types.UnionType, typing.Union):
        parts = (entity_in(part) for part in typing.get_args(hint) if part is not Ellipsis)
        return next((part for part in parts if part), None)
    return hint if dataclasses.is_dataclass(hint) else None


class WireClient:
    """One connection. Answers come in the order of the requests, or the test fails."""

    def __init__(self, bootstrap: str) -> None:
        host, _, port = bootstrap.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), _ANSWER_TIMEOUT_S)
        self._answers = self._socket.makefile("rb")
        self._correlation_id = 0
        self._expected: list[tuple[int, int, int]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._answers.close()
        self._socket.close()

    def send(self, message: Any, *, is_answered: bool = True) -> None:
        """Send one request without waiting."""
        api_key, version = message.__api_key__, message.__version__
        self._correlation_id += 1
        frame = io.BytesIO()
        header = {
            "request_api_key": api_key,
            "request_api_version": version,
            "correlation_id": self._correlation_id,
            "client_id": "interop",
        }
        schema = message.__header_schema__
        names = {field.name for field in dataclasses.fields(schema)}
        entity_writer(schema)(
            frame, schema(**{name: value for name, value in header.items() if name in names})
        )
        entity_writer(type(message))(frame, message)
        self.send_frame(frame.getvalue())
        if is_answered:
            self._expected.append((api_key, version, self._correlation_id))

    def send_frame(self, frame: bytes) -> None:
        """Send any bytes behind their right length."""
        self._socket.sendall(struct.pack(">i", len(frame)) + frame)

    def send_bytes(self, content: bytes) -> None:
        """Send any bytes as they are."""
        self._socket.sendall(content)

    def receive(self) -> Any:
        """Return the answer to the oldest request that has none yet."""
        api_key, version, correlation_id = self._expected.pop(0)
        frame = self.receive_frame()
        assert frame is not None, f"the connection was closed on API {api_key} v{version}"
        schema = load_response_schema(api_key, version)
        header, size = entity_reader(schema.__header_schema__)(frame, 0)
        assert header.correlation_id == correlation_id
        answer, body_size = entity_reader(schema)(frame, size)
        assert size + body_size == len(frame), "bytes follow the answer"
        return answer

    def receive_frame(self) -> bytes | None:
        """Return one frame without its length; None when the peer has closed."""
        try:
            prefix = self._answers.read(4)
            if not prefix:
                return None
            (length,) = struct.unpack(">i", prefix)
            return self._answers.read(length)
        except ConnectionResetError:
            return None

    def call(self, api_key: int, version: int, **fields: Any) -> Any:
        """Send one request and return its answer."""
        self.send(request(api_key, version, **fields))
        return self.receive()

    def create_topic(self, name: str, partitions: int = 1, **configs: object) -> Any:
        """Create a topic and return its part of the answer; dots in configs are underscores."""
        answer = self.call(CREATE_TOPICS, 7, **topic_creation(name, partitions, **configs))
        return answer.topics[0]

    def produce(
        self, topic: str, records: bytes, *, partition: int = 0, acks: int = -1, version: int = 9
    ) -> Any:
        """Produce to one partition and return its part of the answer."""
        answer = self.call(
            PRODUCE, version, **produce_fields(topic, records, partition=partition, acks=acks)
        )
        return answer.responses[0].partition_responses[0]

    def fetch(self, topic: str, offset: int, *, version: int = 12, **limits: Any) -> Any:
        """Fetch from partition 0 without a session and return its part of the answer."""
        answer = self.call(FETCH, version, **fetch_fields({topic: offset}, **limits))
        return answer.responses[0].partitions[0]

    def list_offset(
        self, topic: str, timestamp: int, *, partition: int = 0, version: int = 7
    ) -> Any:
        """Ask for one offset of a partition."""
        asked = {"partition_index": partition, "timestamp": timestamp}
        topics = [{"name": topic, "partitions": [asked]}]
        fields: dict[str, Any] = {"replica_id": -1, "topics": topics}
        if version >= 2:
            fields["isolation_level"] = 0
        if version >= 10:
            fields["timeout"] = 1000
        return self.call(LIST_OFFSETS, version, **fields).topics[0].partitions[0]

    def topic_id(self, topic: str) -> Any:
        """Look up the id of a topic."""
        topics = [{"topic_id": None, "name": topic}]
        fields = {"allow_auto_topic_creation": False, "include_topic_authorized_operations": False}
        return self.call(METADATA, 13, topics=topics, **fields).topics[0].topic_id


def topic_creation(name: str, partitions: int = 1, **configs: object) -> dict[str, Any]:
    """The fields of a CreateTopics request for one topic."""
    topic = {
        "name": name,
        "num_partitions": partitions,
        "replication_factor": 1,
        "assignments": [],
        "configs": [
            {"name": key.replace("_", "."), "value": str(value)} for key, value in configs.items()
        ],
    }
    return {"topics": [topic], "timeout": 10_000, "validate_only": False}


def produce_fields(
    topic: str, records: bytes, *, partition: int = 0, acks: int = -1
) -> dict[str, Any]:
    """The fields of a Produce request (v3-12) for one partition."""
    partition_data = {"index": partition, "records": bytes(records)}
    topic_data = [{"name": topic, "partition_data": [partition_data]}]
    return {
        "transactional_id": None,
        "acks": acks,
        "timeout": 10_000,
        "topic_data": topic_data,
    }


def fetch_fields(
    offsets: dict[str, int],
    *,
    max_wait: int = 0,
    min_bytes: int = 0,
    max_bytes: int = 50_000_000,
    partition_max_bytes: int = 1_000_000,
    session: tuple[int, int] = (0, -1),
    forgotten: Sequence[str] = (),
) -> dict[str, Any]:
    """The fields of a Fetch request (v7-12) for partition 0 of some topics."""
    return {
        "replica_id": -1,
        "max_wait": max_wait,
        "min_bytes": min_bytes,
        "max_bytes": max_bytes,
        "isolation_level": 0,
        "session_id": session[0],
        "session_epoch": session[1],
        "topics": [
            {
                "topic": topic,
                "partitions": [
                    {
                        "partition": 0,
                        "fetch_offset": offset,
                        "partition_max_bytes": partition_max_bytes,
                    }
                ],
            }
            for topic, offset in offsets.items()
        ],
        "forgotten_topics_data": [{"topic": topic, "partitions": [0]} for topic in forgotten],
        "rack_id": "",
    }


def batch_of(
    count: int, *, key: bytes | None = b"k", timestamp: int = T0, **options: Any
) -> bytearray:
    """One batch of `count` small records, a second apart."""
    records: list[Record] = [
        record._replace(timestamp=timestamp + 1000 * record.offset)
        for record in numbered([f"value-{index}".encode() for index in range(count)], key=key)
    ]
    return build_batch(records, **options)
