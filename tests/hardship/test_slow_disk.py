"""A disk that takes 16 ms for a sync: thousands of requests wait, and none may be harmed by it."""

import struct
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from kio.schema.produce.v9.request import PartitionProduceData, ProduceRequest, TopicProduceData

from headrace.testing import broker_process

SYNC_MS = 16
CONNECTIONS = 4
PARTITIONS = 16

# Of an answer to Produce v9 for one partition of `flood`: correlation id, error code, base offset.
_ACK = struct.Struct(">i8xx4xhq")


class Flood:
    """One connection that sends without waiting, and what it was promised."""

    def __init__(
        self,
        wire: Any,
        number: int,
        count: int,
        batch: Callable[..., bytes],
        frame: Callable[..., bytes],
    ) -> None:
        self._wire = wire
        self.promised: list[tuple[int, int, bytes]] = []
        self.refused: list[int] = []
        self._values = [
            (at % PARTITIONS, b"%d-%d." % (number, at) + b"v" * (at * 37 % 40))
            for at in range(count)
        ]
        self._frames = b"".join(
            frame(_request(partition, batch([value])), at)
            for at, (partition, value) in enumerate(self._values)
        )
        self._threads = [threading.Thread(target=work) for work in (self._send, self._receive)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def join(self) -> None:
        for thread in self._threads:
            thread.join()

    def _send(self) -> None:
        self._wire.socket.sendall(self._frames)

    def _receive(self) -> None:
        for at, (partition, value) in enumerate(self._values):
            correlation_id, error_code, base_offset = _ACK.unpack_from(self._wire.receive_frame())
            assert correlation_id == at
            if error_code:
                self.refused.append(error_code)
            else:
                self.promised.append((partition, base_offset, value))


def _request(partition: int, batch: bytes) -> ProduceRequest:
    data = PartitionProduceData(index=partition, records=batch)
    topic = TopicProduceData(name="flood", partition_data=(data,))
    return ProduceRequest(acks=-1, timeout=timedelta(seconds=60), topic_data=(topic,))


@pytest.mark.parametrize(("in_flight", "count"), [(20, 3_000), (1_000, 10_000)])
def test_what_a_slow_disk_acknowledges_is_what_was_sent(
    in_flight: int,
    count: int,
    tmp_path: Path,
    connect: Callable[..., Any],
    batch: Callable[..., bytes],
    frame: Callable[..., bytes],
    slow_disk: Any,
) -> None:
    slow_disk.slow_down(SYNC_MS)
    settings = {
        "headrace.connection.inflight.requests.max": in_flight,
        "headrace.debug.checks": True,
    }
    with broker_process(tmp_path, **settings) as broker:
        wire = connect(broker.port)
        assert wire.create_topic("flood", PARTITIONS) == 0
        floods = [
            Flood(connect(broker.port, 120.0), number, count, batch, frame)
            for number in range(CONNECTIONS)
        ]

        for flood in floods:
            flood.start()
        for flood in floods:
            flood.join()

        found = {
            (partition, record.offset): record.value
            for partition in range(PARTITIONS)
            for record in wire.read_all("flood", partition)
        }
        assert [flood.refused for flood in floods] == [[]] * CONNECTIONS
        promised = [one for flood in floods for one in flood.promised]
        wrong = [one for one in promised if found.get(one[:2]) != one[2]]
        assert len(promised) == CONNECTIONS * count
        assert not wrong, f"{len(wrong)} of {len(promised)} acknowledged batches lost or altered"
        assert len(found) == len(promised)
