"""DescribeLogDirs (35).

v2  flexible encoding
v3  an error code for the whole answer
v4  size of the volume (KIP-827)
v5  is_cordoned (KIP-1066)
"""

import asyncio
import shutil
from collections import defaultdict
from collections.abc import Iterable

from kio.schema.describe_log_dirs.v5.request import DescribeLogDirsRequest
from kio.schema.describe_log_dirs.v5.response import (
    DescribeLogDirsPartition,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from kio.schema.errors import ErrorCode
from kio.schema.types import TopicName
from kio.static.primitive import i32, i64

from headrace.broker.handlers.throttle import NO_THROTTLE
from headrace.broker.state import BrokerState, RequestContext
from headrace.broker.turns import in_slices
from headrace.model import TopicPartition


async def handle(
    request: DescribeLogDirsRequest, broker: BrokerState, context: RequestContext
) -> DescribeLogDirsResponse:
    """Tell how much room the volume has and what each partition takes; opens no log."""
    path = broker.topics.data_dir.absolute()
    try:
        volume = await asyncio.to_thread(shutil.disk_usage, path)
        sizes = await broker.topics.sizes_bytes(await _wanted(request, broker))
    except OSError:
        result = DescribeLogDirsResult(
            error_code=ErrorCode.kafka_storage_error, log_dir=str(path), topics=()
        )
    else:
        result = DescribeLogDirsResult(
            error_code=ErrorCode.none,
            log_dir=str(path),
            topics=await _topics(sizes),
            total_bytes=i64(volume.total),
            usable_bytes=i64(volume.free),
        )
    return DescribeLogDirsResponse(
        throttle_time=NO_THROTTLE, error_code=ErrorCode.none, results=(result,)
    )


async def _wanted(request: DescribeLogDirsRequest, broker: BrokerState) -> list[TopicPartition]:
    """Name the partitions asked for that there are; null asks for all."""
    asked: Iterable[tuple[str, Iterable[int]]]
    if request.topics is None:
        asked = [(topic.name, range(topic.partition_count)) for topic in broker.topics.all()]
    else:
        asked = [(topic.topic, topic.partitions) for topic in request.topics]
    wanted: list[TopicPartition] = []
    async for name, partitions in in_slices(asked):
        count = broker.topics.get(name).partition_count if broker.topics.has(name) else 0
        wanted += [TopicPartition(name, one) for one in partitions if 0 <= one < count]
    return wanted


async def _topics(sizes: dict[TopicPartition, int]) -> tuple[DescribeLogDirsTopic, ...]:
    partitions: defaultdict[str, list[DescribeLogDirsPartition]] = defaultdict(list)
    async for (name, partition), size in in_slices(sizes.items()):
        partitions[name].append(
            DescribeLogDirsPartition(
                partition_index=i32(partition),
                partition_size=i64(size),
                offset_lag=i64(0),
                is_future_key=False,
            )
        )
    return tuple(
        DescribeLogDirsTopic(name=TopicName(name), partitions=tuple(rows))
        for name, rows in partitions.items()
    )
