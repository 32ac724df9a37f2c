"""What a restart keeps: messages, offsets, producers' sequences, log starts and configs."""

import contextlib
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, Message, Producer
from kio.schema.describe_configs.v4.request import DescribeConfigsRequest, DescribeConfigsResource
from kio.schema.errors import ErrorCode

from headrace.testing import BrokerProcess, broker_process

GIB = 1024**3
TOPIC_RESOURCE = 2
EARLIEST, LATEST = -2, -1
STOPS = ["terminate", "kill"]


def stop(broker: BrokerProcess, how: str) -> None:
    if how == "kill":
        broker.kill()
    else:
        assert broker.terminate() == 0


def test_sigterm_under_load_drains_and_leaves_a_clean_directory(
    tmp_path: Path, port: int, connect: Callable[..., Any]
) -> None:
    acknowledged: list[dict[int, bytes]] = [{}, {}]
    failures: list[KafkaError] = []
    sent = [0, 0]

    def on_delivery(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            failures.append(error)
        else:
            acknowledged[message.partition()][message.offset()] = message.value()

    with broker_process(tmp_path, port=port) as broker:
        assert connect(broker.port).create_topic("load", 2) == 0
        producer = Producer(
            {
                "bootstrap.servers": broker.bootstrap,
                "enable.idempotence": True,
                "linger.ms": 1,
                "batch.num.messages": 50,
                "reconnect.backoff.ms": 10,
                "reconnect.backoff.max.ms": 50,
                "log_level": 0,
            }
        )
        while len(acknowledged[0]) + len(acknowledged[1]) < 2_000 or len(producer) < 500:
            partition = sent[0] > sent[1]
            value = b"%d" % sent[partition]
            producer.produce("load", value, partition=int(partition), on_delivery=on_delivery)
            sent[partition] += 1
            producer.poll(0.01 if len(producer) > 2_000 else 0)

        assert broker.terminate() == 0
        assert "Traceback" not in broker.stderr_text()

    assert (tmp_path / ".kafka_cleanshutdown").exists()
    with broker_process(tmp_path, port=port) as broker:
        assert "repaired" not in broker.stderr_text()
        assert producer.flush(120) == 0
        assert not failures
        wire = connect(broker.port)
        for partition in range(2):
            values = wire.values("load", partition)
            assert values == [b"%d" % n for n in range(sent[partition])]
            assert acknowledged[partition] == dict(enumerate(values))


def test_offsets_never_go_backwards(tmp_path: Path, connect: Callable[..., Any]) -> None:
    ends = [0]

    for how in ("terminate", "kill", "kill", "terminate"):
        with broker_process(tmp_path) as broker:
            wire = connect(broker.port)
            if "counted" not in wire.topics():
                assert wire.create_topic("counted") == 0
            ends.append(wire.offset_at("counted", 0, LATEST))
            for _ in range(3):
                ack = wire.produce_values("counted", b"a", b"b")
                ends += [ack.base_offset, ack.base_offset + 2]
            ends.append(wire.offset_at("counted", 0, LATEST))
            stop(broker, how)

    assert ends == sorted(ends)
    assert ends[-1] == 4 * 3 * 2


@pytest.mark.parametrize("segment_ms", [1, 604_800_000], ids=["a segment a batch", "one segment"])
@pytest.mark.parametrize("how", STOPS)
def test_a_retry_of_each_of_the_last_five_batches_gives_the_original_offset(
    how: str,
    segment_ms: int,
    tmp_path: Path,
    connect: Callable[..., Any],
    batch: Callable[..., bytes],
) -> None:
    with broker_process(tmp_path) as broker:
        wire = connect(broker.port)
        assert wire.create_topic("once", segment_ms=segment_ms) == 0
        producer_id, epoch = wire.init_producer_id()
        first = int(time.time() * 1000)
        batches = [
            batch(
                [b"%d a" % n, b"%d b" % n],
                producer_id=producer_id,
                producer_epoch=epoch,
                base_sequence=2 * n,
                timestamp=first + 10 * n,
            )
            for n in range(9)
        ]
        for number, data in enumerate(batches[:8]):
            assert wire.produce("once", 0, data).base_offset == 2 * number
        stop(broker, how)

    with broker_process(tmp_path) as broker:
        wire = connect(broker.port)
        for number in (3, 4, 5, 6, 7, 5):
            ack = wire.produce("once", 0, batches[number])
            assert (ack.error_code, ack.base_offset) == (0, 2 * number)
        assert wire.offset_at("once", 0, LATEST) == 16
        following = wire.produce("once", 0, batches[8])
        assert (following.error_code, following.base_offset) == (0, 16)
        gap = batch([b"gap"], producer_id=producer_id, producer_epoch=epoch, base_sequence=20)
        assert wire.produce("once", 0, gap).error_code == ErrorCode.out_of_order_sequence_number


@pytest.mark.parametrize("how", STOPS)
def test_producer_ids_are_never_given_out_twice(
    how: str, tmp_path: Path, connect: Callable[..., Any]
) -> None:
    ids = []
    for _ in range(3):
        with broker_process(tmp_path) as broker:
            wire = connect(broker.port)
            ids += [wire.init_producer_id() for _ in range(5)]
            stop(broker, how)

    assert len(set(ids)) == 15


@pytest.mark.parametrize("how", STOPS)
def test_the_log_start_after_delete_records_survives(
    how: str, tmp_path: Path, connect: Callable[..., Any]
) -> None:
    with broker_process(tmp_path) as broker:
        wire = connect(broker.port)
        assert wire.create_topic("shortened") == 0
        for number in range(10):
            wire.produce_values("shortened", b"%d" % number)
        assert wire.delete_records("shortened", 0, 7) == 0
        stop(broker, how)

    with broker_process(tmp_path) as broker:
        wire = connect(broker.port)
        assert wire.offset_at("shortened", 0, EARLIEST) == 7
        assert wire.values("shortened") == [b"7", b"8", b"9"]
        assert wire.fetch("shortened", 0, 6).error_code == ErrorCode.offset_out_of_range


@pytest.mark.parametrize("how", STOPS)
def test_topic_configs_survive_and_still_act(
    how: str, tmp_path: Path, connect: Callable[..., Any], batch: Callable[..., bytes]
) -> None:
    configs = {
        "max_message_bytes": 2_000,
        "message_timestamp_type": "LogAppendTime",
        "cleanup_policy": "compact",
    }
    with broker_process(tmp_path) as broker:
        wire = connect(broker.port)
        assert wire.create_topic("strict", **configs) == 0
        assert wire.produce("strict", 0, batch([b"v"], key=b"k")).error_code == 0
        stop(broker, how)

    with broker_process(tmp_path) as broker:
        wire = connect(broker.port)
        resource = DescribeConfigsResource(
            resource_type=TOPIC_RESOURCE, resource_name="strict", configuration_keys=None
        )
        (described,) = wire.ask(DescribeConfigsRequest(resources=(resource,))).results
        found = {config.name: config.value for config in described.configs}
        for name, value in configs.items():
            assert found[name.replace("_", ".")] == str(value)

        too_large = wire.produce("strict", 0, batch([b"v" * 3_000], key=b"k"))
        keyless = wire.produce("strict", 0, batch([b"v"]))
        stamped = wire.produce("strict", 0, batch([b"v"], key=b"k", timestamp=1))

        assert too_large.error_code == ErrorCode.message_too_large
        assert keyless.error_code == ErrorCode.invalid_record
        assert stamped.error_code == 0
        assert wire.read_all("strict")[-1].timestamp > 1


def test_checkpoints_beside_appends_and_new_partitions_keep_running_and_stay_true(
    tmp_path: Path,
    connect: Callable[..., Any],
    batch: Callable[..., bytes],
    until: Callable[..., Any],
    headrace_command: Callable[..., Any],
) -> None:
    """Checkpoints every millisecond: what they share with the writers must not be torn."""
    checkpoint = tmp_path / "recovery-point-offset-checkpoint"
    with broker_process(tmp_path, log_flush_offset_checkpoint_interval_ms=1) as broker:
        wire = connect(broker.port)
        assert wire.create_topic("busy", 200, index_interval_bytes=0) == 0
        first = int(time.time() * 1000)
        for number in range(3_000):
            # Each batch has a later time, and so an entry in both indexes.
            data = batch([b"%d" % number], timestamp=first + number)
            wire.send_batch("busy", 0, data, acks=1)
            if number % 15 == 0:
                wire.send_batch("busy", number // 15, data, acks=1)
        while wire.pipelined:
            assert wire.receive_ack().error_code == 0
        assert wire.produce_values("busy", b"synced", partition=199).error_code == 0

        until(lambda: "busy 199 2\n" in checkpoint.read_text(), "the newest is checkpointed")
        assert broker.terminate() == 0
        assert "Traceback" not in broker.stderr_text()
    verified = headrace_command("log", "verify", tmp_path)
    assert verified.returncode == 0, verified.stdout


@pytest.fixture
def large_dir() -> Iterator[Path]:
    """Not tmp_path: pytest keeps three of those."""
    directory = Path(tempfile.mkdtemp(prefix="headrace-large-"))
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, directory)
        if shutil.disk_usage(directory).free < 15 * GIB:
            pytest.skip("needs 15 GB of disk")
        yield directory


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_ten_gigabytes_come_up_after_any_stop(
    large_dir: Path, connect: Callable[..., Any], batch: Callable[..., bytes]
) -> None:
    data = batch([bytes(1000) for _ in range(1000)])
    count = 10 * GIB // len(data)
    ahead = 50
    with broker_process(large_dir) as broker:
        wire = connect(broker.port)
        assert wire.create_topic("large", 4) == 0
        for number in range(count + ahead):
            if number < count:
                wire.send_batch("large", number % 4, data, acks=1)
            if number >= ahead:
                assert wire.receive_ack().error_code == 0
        assert broker.terminate(300) == 0

    for how in ("terminate", "kill", "terminate"):
        with broker_process(large_dir, wait=False) as broker:
            broker.wait_ready(600)
            print(f"ready in {broker.ready_seconds:.2f} s with {count * len(data) / GIB:.1f} GiB")
            wire = connect(broker.port, timeout=120)
            ends = [wire.offset_at("large", partition, LATEST) for partition in range(4)]
            assert sum(ends) == 1000 * count
            assert wire.fetch("large", 0, ends[0] - 1).error_code == 0
            if how == "kill":
                broker.kill()
            else:
                assert broker.terminate(300) == 0
