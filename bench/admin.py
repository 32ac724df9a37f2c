"""The few requests a benchmark makes besides its load: create, find and delete a topic."""

import time
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, TypeVar
from uuid import UUID

from kio.schema.create_topics.v7.request import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kio.schema.create_topics.v7.response import CreateTopicsResponse
from kio.schema.delete_topics.v6.request import DeleteTopicsRequest, DeleteTopicState
from kio.schema.delete_topics.v6.response import DeleteTopicsResponse
from kio.schema.errors import ErrorCode
from kio.schema.list_offsets.v7.request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kio.schema.list_offsets.v7.response import ListOffsetsResponse
from kio.schema.metadata.v12.request import MetadataRequest, MetadataRequestTopic
from kio.schema.metadata.v12.response import MetadataResponse
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i8, i16, i32, i32Timedelta, i64
from kio.static.protocol import Entity

from bench.errors import BenchError
from headrace.client.errors import BusError
from headrace.client.wire import WireConnection

R = TypeVar("R", bound=Entity)

_TIMEOUT_S = 600  # Kafka takes minutes to lead ten thousand new partitions on a busy machine
_POLL_S = 0.02
_LATEST = i64(-1)
_SHORT_WAIT = i32Timedelta.parse(timedelta(seconds=_TIMEOUT_S))


class Admin:
    """One connection to one broker; one question at a time."""

    def __init__(self, host: str, port: int) -> None:
        self._connection = WireConnection((host, port), timeout_s=_TIMEOUT_S)

    def close(self) -> None:
        self._connection.close()

    def create_topic(self, name: str, partitions: int, configs: Mapping[str, str]) -> UUID:
        """Create a topic and return its id once every partition is served."""
        topic = CreatableTopic(
            name=TopicName(name),
            num_partitions=i32(partitions),
            replication_factor=i16(1),
            assignments=(),
            configs=tuple(CreatableTopicConfig(name=k, value=v) for k, v in configs.items()),
        )
        request = CreateTopicsRequest(topics=(topic,), timeout=_SHORT_WAIT)
        (result,) = self._ask(request, CreateTopicsResponse).topics
        if result.error_code is not ErrorCode.none:
            raise BenchError(
                f"topic {name} was refused: {result.error_code.name} {result.error_message or ''}"
            )
        deadline = time.monotonic() + _TIMEOUT_S
        while (topic_id := self._ready_topic(name, partitions)) is None:
            if time.monotonic() > deadline:
                raise BenchError(f"topic {name} has no leaders after {_TIMEOUT_S} s")
            time.sleep(_POLL_S)
        return topic_id

    def delete_topic(self, name: str) -> None:
        request = DeleteTopicsRequest(
            topics=(DeleteTopicState(name=TopicName(name), topic_id=None),), timeout=_SHORT_WAIT
        )
        (result,) = self._ask(request, DeleteTopicsResponse).responses
        if result.error_code is not ErrorCode.none:
            raise BenchError(f"topic {name} cannot be deleted: {result.error_code.name}")

    def _ready_topic(self, name: str, partitions: int) -> UUID | None:
        request = MetadataRequest(
            topics=(MetadataRequestTopic(topic_id=None, name=TopicName(name)),),
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=False,
        )
        (topic,) = self._ask(request, MetadataResponse).topics
        is_known = topic.error_code is ErrorCode.none and len(topic.partitions) == partitions
        return topic.topic_id if is_known and self._leads_all(name, partitions) else None

    def _leads_all(self, name: str, partitions: int) -> bool:
        """Ask for every partition's end: Kafka lists a leader before it acts as one."""
        ends = tuple(
            ListOffsetsPartition(partition_index=i32(index), timestamp=_LATEST)
            for index in range(partitions)
        )
        request = ListOffsetsRequest(
            replica_id=BrokerId(-1),
            isolation_level=i8(0),
            topics=(ListOffsetsTopic(name=TopicName(name), partitions=ends),),
        )
        (topic,) = self._ask(request, ListOffsetsResponse).topics
        return all(partition.error_code is ErrorCode.none for partition in topic.partitions)

    def _ask(self, request: Any, response_type: type[R]) -> R:
        try:
            answer = self._connection.ask(request)
        except BusError as error:
            raise BenchError(str(error)) from error
        assert isinstance(answer, response_type)
        return answer
