"""Requests from plain values, encoded by kio once, before the clock starts."""

import dataclasses
import struct
import types
import typing
from collections.abc import Iterable
from datetime import timedelta
from typing import Any, NamedTuple

from kio.index import load_request_schema

from headrace.client.wire import encode_request
from headrace.protocol.primitives import write_uvarint

PRODUCE, FETCH, LIST_OFFSETS, METADATA = 0, 1, 2, 3
OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR, LIST_GROUPS = 8, 9, 10, 16
API_VERSIONS, CREATE_TOPICS, DELETE_TOPICS = 18, 19, 20
DESCRIBE_CONFIGS, DESCRIBE_LOG_DIRS, INCREMENTAL_ALTER_CONFIGS = 32, 35, 44

_SIZE = struct.Struct(">i")


class Frame(NamedTuple):
    """One encoded request, and what is needed to read its answer."""

    api_key: int
    version: int
    data: bytes


def encode(api_key: int, version: int, **fields: Any) -> Frame:
    """Encode a request: dicts for nested parts, numbers for milliseconds, a tuple for an array."""
    request = _build(load_request_schema(api_key, version), fields)
    return Frame(api_key, version, encode_request(request, client_id="stalls"))


def stretch(frame: Frame, element: bytes, elements: Iterable[bytes]) -> Frame:
    """Put `elements` where a flexible request has one array of the one `element`.

    A request of a million entities takes kio half a minute; its bytes take no time.
    """
    at = frame.data.index(element)
    if frame.data[at - 1] != 2 or frame.data.count(element) != 1:
        raise ValueError("the element must be alone in a compact array, and nowhere else")
    many = list(elements)
    body = frame.data[_SIZE.size : at - 1] + write_uvarint(len(many) + 1)
    body += b"".join(many) + frame.data[at + len(element) :]
    return Frame(frame.api_key, frame.version, _SIZE.pack(len(body)) + body)


def produce(batches: Iterable[tuple[str, int, bytes]], acks: int = 1) -> Frame:
    """Encode one Produce of these batches, each with its topic and partition."""
    topics: dict[str, list[dict[str, Any]]] = {}
    for topic, partition, batch in batches:
        topics.setdefault(topic, []).append({"index": partition, "records": bytes(batch)})
    data = [{"name": name, "partition_data": parts} for name, parts in topics.items()]
    return encode(PRODUCE, 10, transactional_id=None, acks=acks, timeout=30_000, topic_data=data)


def fetch(
    topics: dict[str, list[tuple[int, int]]],
    *,
    session: tuple[int, int] = (0, -1),
    max_wait_ms: int = 500,
    max_bytes: int = 50 * 1024 * 1024,
) -> Frame:
    """Encode a Fetch of partitions and offsets by topic; `session` is its id and epoch."""
    asked = [
        {
            "topic": name,
            "partitions": [
                {"partition": partition, "fetch_offset": offset, "partition_max_bytes": max_bytes}
                for partition, offset in partitions
            ],
        }
        for name, partitions in topics.items()
    ]
    return encode(
        FETCH,
        12,
        replica_id=-1,
        max_wait=max_wait_ms,
        min_bytes=1,
        max_bytes=max_bytes,
        isolation_level=0,
        session_id=session[0],
        session_epoch=session[1],
        topics=asked,
        forgotten_topics_data=(),
    )


def metadata(names: Iterable[str] | None) -> Frame:
    """Encode a Metadata of these topics, or of all."""
    topics = None if names is None else [{"topic_id": None, "name": name} for name in names]
    return encode(
        METADATA,
        12,
        topics=topics,
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=False,
    )


def create_topics(names: Iterable[str], partitions: int) -> Frame:
    """Encode one CreateTopics of them all."""
    topics = [
        {
            "name": name,
            "num_partitions": partitions,
            "replication_factor": 1,
            "assignments": (),
            "configs": (),
        }
        for name in names
    ]
    return encode(CREATE_TOPICS, 7, topics=topics, timeout=120_000, validate_only=False)


def delete_topics(names: Iterable[str]) -> Frame:
    """Encode one DeleteTopics of them all."""
    topics = [{"name": name, "topic_id": None} for name in names]
    return encode(DELETE_TOPICS, 6, topics=topics, timeout=120_000)


def commit_offsets(group: str, topics: dict[str, Iterable[int]], offset: int = 1) -> Frame:
    """Encode a commit of someone who is in no generation."""
    asked = [
        {
            "name": name,
            "partitions": [
                {
                    "partition_index": partition,
                    "committed_offset": offset,
                    "committed_metadata": "",
                }
                for partition in partitions
            ],
        }
        for name, partitions in topics.items()
    ]
    return encode(OFFSET_COMMIT, 8, group_id=group, generation_id_or_member_epoch=-1,
                  member_id="", group_instance_id=None, topics=asked)  # fmt: skip


def alter_config(resource_type: int, resource: str, name: str, value: str) -> Frame:
    """Encode an IncrementalAlterConfigs that sets one config of a topic (2) or a broker (4)."""
    config = {"name": name, "config_operation": 0, "value": value}
    asked = {"resource_type": resource_type, "resource_name": resource, "configs": [config]}
    return encode(INCREMENTAL_ALTER_CONFIGS, 1, resources=[asked], validate_only=False)


def _build(schema: Any, fields: dict[str, Any]) -> Any:
    hints = typing.get_type_hints(schema)
    kinds = {one.name: one.metadata.get("kafka_type", "") for one in dataclasses.fields(schema)}
    return schema(
        **{name: _convert(hints[name], kinds[name], value) for name, value in fields.items()}
    )


def _convert(hint: Any, kind: str, value: Any) -> Any:
    if isinstance(value, dict):
        return _build(_entity_in(hint), value)
    if isinstance(value, list | tuple):
        return tuple(_convert(hint, kind, item) for item in value)
    if kind.startswith("timedelta"):
        return timedelta(milliseconds=value)
    return value


def _entity_in(hint: Any) -> Any:
    """Find the one entity in `Entity`, `tuple[Entity, ...]` or either `| None`."""
    if typing.get_origin(hint) in (tuple, types.UnionType, typing.Union):
        parts = (_entity_in(part) for part in typing.get_args(hint) if part is not Ellipsis)
        return next((part for part in parts if part), None)
    return hint if dataclasses.is_dataclass(hint) else None
