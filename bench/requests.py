"""Files of pre-encoded requests for the replay client.

A file is "HRQ1" and then, per request, four little-endian u32 (frame size, messages,
batch bytes, position of the fetch offset in the frame) and the frame itself.
"""

import random
import struct
import time
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from uuid import UUID

from kio.schema.fetch.v16.request import FetchPartition, FetchRequest, FetchTopic
from kio.schema.produce.v10.request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kio.schema.types import TopicName
from kio.static.primitive import Records, i16, i32, i32Timedelta, i64

from headrace.client.wire import encode_request
from headrace.records.builder import build_batch, numbered

_MAGIC = b"HRQ1"
_ENTRY = struct.Struct("<IIII")
_PRODUCE_TIMEOUT = i32Timedelta.parse(timedelta(seconds=30))
_FETCH_BYTES = 1024 * 1024  # librdkafka's and Java's default per partition
_FETCH_MAX_WAIT = i32Timedelta.parse(timedelta(milliseconds=500))
# Stands for the offset while encoding; found again by its bytes.
_OFFSET_MARK = 0x1122334455667788


def write_produce_requests(
    path: Path, *, topic: str, partitions: int, value_bytes: int, messages: int, acks: int
) -> int:
    """Write one request a partition, each one batch of `messages`; return the batch's size."""
    value = random.Random(value_bytes).randbytes(value_bytes)
    batch = bytes(build_batch(numbered([value] * messages, timestamp=int(time.time() * 1000))))
    write_requests(
        path,
        (
            (produce_frame(topic, partition, batch, acks), messages, len(batch), 0)
            for partition in range(partitions)
        ),
    )
    return len(batch)


def write_fetch_requests(path: Path, *, topic_id: UUID, partitions: int) -> None:
    """Write one sessionless Fetch a partition, whose offset the client fills in."""
    mark = struct.pack(">q", _OFFSET_MARK)
    frames = (encode_request(_fetch(topic_id, partition)) for partition in range(partitions))
    write_requests(path, ((frame, 0, 0, frame.index(mark)) for frame in frames))


def write_requests(path: Path, requests: Iterable[tuple[bytes, int, int, int]]) -> None:
    """Write frames, each with its messages, batch bytes and position of the offset."""
    with path.open("wb") as file:
        file.write(_MAGIC)
        for frame, messages, batch_bytes, offset_position in requests:
            file.write(_ENTRY.pack(len(frame), messages, batch_bytes, offset_position))
            file.write(frame)


def produce_frame(topic: str, partition: int, batch: bytes, acks: int) -> bytes:
    """Encode a request that appends one batch to one partition."""
    data = PartitionProduceData(index=i32(partition), records=Records(batch))
    request = ProduceRequest(
        transactional_id=None,
        acks=i16(acks),
        timeout=_PRODUCE_TIMEOUT,
        topic_data=(TopicProduceData(name=TopicName(topic), partition_data=(data,)),),
    )
    return encode_request(request)


def _fetch(topic_id: UUID, partition: int) -> FetchRequest:
    wanted = FetchPartition(
        partition=i32(partition),
        fetch_offset=i64(_OFFSET_MARK),
        partition_max_bytes=i32(_FETCH_BYTES),
    )
    return FetchRequest(
        max_wait=_FETCH_MAX_WAIT,
        min_bytes=i32(1),
        max_bytes=i32(50 * _FETCH_BYTES),
        topics=(FetchTopic(topic_id=topic_id, partitions=(wanted,)),),
        forgotten_topics_data=(),
    )
