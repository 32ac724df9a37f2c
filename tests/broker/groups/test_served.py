"""Groups behind a real server: its loop, its disk, its end."""

from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from tests.interop.wire import WireClient, request

from headrace.testing import broker_process, running_broker

JOIN, SYNC, COMMIT, FETCH, LIST = 11, 14, 8, 9, 16
COORDINATOR_NOT_AVAILABLE = 15


def join(member_id: str = "") -> object:
    return request(
        JOIN,
        3,
        group_id="g",
        member_id=member_id,
        session_timeout=30_000,
        rebalance_timeout=30_000,
        protocol_type="consumer",
        protocols=[{"name": "range", "metadata": b""}],
    )


def commit(offset: int, retention_ms: int = -1) -> object:
    partition = {"partition_index": 0, "committed_offset": offset, "committed_metadata": ""}
    return request(
        COMMIT,
        4,
        group_id="g",
        member_id="",
        generation_id_or_member_epoch=-1,
        retention_time=retention_ms,
        topics=[{"name": "t", "partitions": [partition]}],
    )


def fetched(wire: WireClient) -> int:
    topics = [{"name": "t", "partition_indexes": [0]}]
    answer = wire.call(FETCH, 5, group_id="g", topics=topics)
    return answer.topics[0].partitions[0].committed_offset


def test_a_broker_that_stops_does_not_wait_for_those_who_wait() -> None:
    with (
        running_broker() as broker,
        WireClient(broker.bootstrap) as first,
        WireClient(broker.bootstrap) as second,
    ):
        first.send(join())
        joined = first.receive()
        assignments = [{"member_id": joined.member_id, "assignment": b""}]
        first.call(
            SYNC,
            2,
            group_id="g",
            generation_id=1,
            member_id=joined.member_id,
            assignments=assignments,
        )
        second.send(join())
        second.send(request(LIST, 0))  # its answer comes behind that of the join

        broker.stop()

        assert second.receive().error_code == COORDINATOR_NOT_AVAILABLE


def test_offsets_are_there_after_kill_9(tmp_path: Path) -> None:
    with broker_process(tmp_path) as broker, WireClient(broker.bootstrap) as wire:
        wire.create_topic("t")
        for offset in range(1, 50):
            wire.send(commit(offset))
            wire.receive()
        broker.kill()

    with broker_process(tmp_path) as broker, WireClient(broker.bootstrap) as wire:
        assert fetched(wire) == 49


def test_old_offsets_are_looked_for_again_and_again() -> None:
    with (
        running_broker(offsets_retention_check_interval_ms=10) as broker,
        WireClient(broker.bootstrap) as wire,
    ):
        wire.create_topic("t")
        wire.send(commit(5, retention_ms=1))
        wire.receive()
        while fetched(wire) != -1:
            pass

        assert wire.call(LIST, 4, states_filter=[]).groups == ()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_consumer_goes_on_where_it_was_after_a_restart(tmp_path: Path, protocol: str) -> None:
    def read(bootstrap: str, count: int) -> list[bytes]:
        consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "g",
                "group.protocol": protocol,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        consumer.subscribe(["t"])
        messages = [message for message in consumer.consume(count, 30) if not message.error()]
        consumer.commit(asynchronous=False)
        consumer.close()
        return [message.value() for message in messages]

    def write(bootstrap: str, *values: str) -> None:
        producer = Producer({"bootstrap.servers": bootstrap})
        for value in values:
            producer.produce("t", value)
        assert producer.flush(120) == 0

    with running_broker(tmp_path) as broker:
        write(broker.bootstrap, "a", "b")
        assert read(broker.bootstrap, 2) == [b"a", b"b"]
    with running_broker(tmp_path) as broker:
        write(broker.bootstrap, "c")
        assert read(broker.bootstrap, 1) == [b"c"]
