"""Damage on disk: named with file and position, never served as good, nothing around it lost."""

import contextlib
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Consumer, KafkaError, TopicPartition
from kio.schema.errors import ErrorCode

from headrace.testing import broker_process, running_broker

TOPIC = "damaged"
BATCHES, PER_BATCH = 120, 5
VICTIM = 60
STOPS = ["clean", "kill"]
# Where a bit is flipped, as a byte of the batch (facts/kafka.md section 3).
FIELDS = {
    "base offset": 7,
    "base offset, high": 2,
    "length": 11,
    "length, high": 8,
    "magic": 16,
    "checksum": 18,
    "last offset delta": 26,
    "producer id": 50,
    "record count": 60,
    "records": 200,
}


class Written(NamedTuple):
    """What was acknowledged, and where it lies."""

    data_dir: Path
    values: list[bytes]
    positions: list[int]
    first_timestamp: int
    last_batch: bytes

    @property
    def partition(self) -> Path:
        return self.data_dir / f"{TOPIC}-0"

    def file(self, suffix: str) -> Path:
        return self.partition / f"{0:020d}{suffix}"


def write_log(data_dir: Path, stop: str, connect: Any, batch: Any) -> Written:
    """A log of many batches, all acknowledged with acks=all; its broker process is gone."""
    values = [b"%d." % n + b"v" * 90 for n in range(BATCHES * PER_BATCH)]
    positions = [0]
    now_ms = int(time.time() * 1000)
    with broker_process(data_dir) as broker:
        wire = connect(broker.port)
        assert wire.create_topic(TOPIC) == 0
        producer_id, epoch = wire.init_producer_id()
        for number in range(BATCHES):
            first = number * PER_BATCH
            data = batch(
                values[first : first + PER_BATCH],
                producer_id=producer_id,
                producer_epoch=epoch,
                base_sequence=first,
                timestamp=now_ms + number,
            )
            wire.send_batch(TOPIC, 0, data)
            positions.append(positions[-1] + len(data))
        for number in range(BATCHES):
            ack = wire.receive_ack()
            assert (ack.error_code, ack.base_offset) == (0, number * PER_BATCH)
        if stop == "kill":
            broker.kill()
        else:
            assert broker.terminate() == 0
    return Written(data_dir, values, positions, now_ms, data)


@pytest.fixture(scope="module")
def templates() -> Iterator[tuple[dict[str, Written], Path]]:
    """One log a way of stopping, written once; tests damage copies."""
    with tempfile.TemporaryDirectory(prefix="headrace-damage-") as directory:
        yield {}, Path(directory)


@pytest.fixture
def written(
    templates: Any, tmp_path: Path, connect: Callable[..., Any], batch: Callable[..., bytes]
) -> Callable[[str], Written]:
    """`written(stop)`: a copy of the log whose broker stopped that way."""
    by_stop, directory = templates

    def copy(stop: str) -> Written:
        if stop not in by_stop:
            by_stop[stop] = write_log(directory / stop, stop, connect, batch)
        shutil.copytree(by_stop[stop].data_dir, tmp_path / "data")
        return by_stop[stop]._replace(data_dir=tmp_path / "data")

    return copy


def flip_bit(path: Path, position: int, bit: int = 0) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 1 << bit
    path.write_bytes(data)


def served(wire: Any, batch_records: Callable[..., Any], offset: int) -> list[tuple[int, bytes]]:
    """What is served from `offset` on without a seek: up to the end or the first error."""
    found: list[tuple[int, bytes]] = []
    while True:
        answer = wire.fetch(TOPIC, 0, offset)
        if answer.error_code != 0 or not answer.records:
            return found
        records = [one for one in batch_records(answer.records) if one.offset >= offset]
        assert records, f"the answer at {offset} holds nothing from there on"
        found += [(record.offset, record.value) for record in records]
        offset = records[-1].offset + 1


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("stop", STOPS)
def test_a_flipped_bit_costs_its_own_batch_only(
    stop: str,
    field: str,
    written: Callable[[str], Written],
    connect: Callable[..., Any],
    batch_records: Callable[..., Any],
) -> None:
    log = written(stop)
    flip_bit(log.file(".log"), log.positions[VICTIM] + FIELDS[field])
    damaged = log.file(".log").read_bytes()
    first, behind = VICTIM * PER_BATCH, (VICTIM + 1) * PER_BATCH
    numbered = list(enumerate(log.values))

    with running_broker(log.data_dir) as broker:
        wire = connect(broker.port)

        for offset in range(first, behind):
            assert wire.fetch(TOPIC, 0, offset).error_code == ErrorCode.corrupt_message
        assert served(wire, batch_records, 0) == numbered[:first]
        assert served(wire, batch_records, behind) == numbered[behind:]
        assert wire.produce_values(TOPIC, b"behind").base_offset == len(log.values)

    assert log.file(".log").read_bytes().startswith(damaged), "bytes behind the damage were cut"
    with running_broker(log.data_dir) as broker:
        wire = connect(broker.port)
        assert wire.fetch(TOPIC, 0, first).error_code == ErrorCode.corrupt_message
        assert served(wire, batch_records, behind)[-1] == (len(log.values), b"behind")


@pytest.mark.parametrize("stop", STOPS)
def test_the_start_or_the_first_reader_and_verify_name_file_and_position(
    stop: str,
    written: Callable[[str], Written],
    connect: Callable[..., Any],
    headrace_command: Callable[..., Any],
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = written(stop)
    position = log.positions[VICTIM]
    flip_bit(log.file(".log"), position + FIELDS["records"])

    verified = headrace_command("log", "verify", log.data_dir)
    with running_broker(log.data_dir) as broker:
        connect(broker.port).fetch(TOPIC, 0, VICTIM * PER_BATCH)

    logged = caplog.text

    assert verified.returncode == 1
    assert str(log.file(".log")) in verified.stdout
    assert f"byte {position}" in verified.stdout
    assert str(log.file(".log")) in logged
    assert f"byte {position}" in logged


def test_a_consumer_gets_the_error_and_can_seek_past_it(
    written: Callable[[str], Written],
) -> None:
    log = written("clean")
    flip_bit(log.file(".log"), log.positions[VICTIM] + FIELDS["records"])
    behind = (VICTIM + 1) * PER_BATCH

    with running_broker(log.data_dir) as broker:
        config = {"bootstrap.servers": broker.bootstrap, "group.id": "none", "log_level": 0,
                  "enable.auto.commit": False, "fetch.error.backoff.ms": 10}  # fmt: skip
        consumer = Consumer(config)
        with contextlib.closing(consumer):
            consumer.assign([TopicPartition(TOPIC, 0, 0)])
            before, error = consume_until_error(consumer, len(log.values))
            consumer.seek(TopicPartition(TOPIC, 0, behind))
            rest, _ = consume_until_error(consumer, len(log.values) - behind)

    assert before == log.values[: VICTIM * PER_BATCH]
    assert error is not None
    assert error.code() in (KafkaError.INVALID_MSG, KafkaError._BAD_MSG)
    assert rest == log.values[behind:]


def consume_until_error(consumer: Consumer, count: int) -> tuple[list[bytes], KafkaError | None]:
    values: list[bytes] = []
    while len(values) < count:
        message = consumer.poll(120)
        assert message is not None, f"nothing came after {len(values)} messages"
        if message.error():
            return values, message.error()
        values.append(message.value())
    return values, None


def test_a_damaged_last_batch_after_a_clean_stop_is_kept_and_its_offsets_are_not_reused(
    written: Callable[[str], Written],
    connect: Callable[..., Any],
    batch_records: Callable[..., Any],
) -> None:
    log = written("clean")
    flip_bit(log.file(".log"), log.positions[BATCHES - 1] + FIELDS["records"])
    first = (BATCHES - 1) * PER_BATCH

    with running_broker(log.data_dir) as broker:
        wire = connect(broker.port)

        assert wire.fetch(TOPIC, 0, first).error_code == ErrorCode.corrupt_message
        assert served(wire, batch_records, 0) == list(enumerate(log.values))[:first]
        assert wire.produce_values(TOPIC, b"behind").base_offset == len(log.values)


@pytest.mark.parametrize("suffix", [".index", ".timeindex", ".snapshot"])
@pytest.mark.parametrize("harm", ["flipped", "halved", "emptied", "deleted", "zeroed"])
@pytest.mark.parametrize("stop", STOPS)
def test_indexes_and_snapshots_are_rebuilt_or_ignored(
    stop: str,
    harm: str,
    suffix: str,
    written: Callable[[str], Written],
    connect: Callable[..., Any],
) -> None:
    log = written(stop)
    for path in log.partition.glob(f"*{suffix}"):
        do_harm(path, harm)

    with running_broker(log.data_dir) as broker:
        wire = connect(broker.port)

        assert wire.values(TOPIC) == log.values
        for number in (0, 1, VICTIM, BATCHES - 1):
            offset = wire.offset_at(TOPIC, 0, log.first_timestamp + number)
            assert offset == number * PER_BATCH
        again = wire.produce(TOPIC, 0, log.last_batch)
        assert (again.error_code, again.base_offset) == (0, (BATCHES - 1) * PER_BATCH)
        assert wire.produce_values(TOPIC, b"next").base_offset == len(log.values)


def do_harm(path: Path, harm: str) -> None:
    size = path.stat().st_size
    if harm == "deleted":
        path.unlink()
    elif harm == "emptied":
        path.write_bytes(b"")
    elif harm == "zeroed":
        path.write_bytes(bytes(size))
    elif harm == "halved":
        path.write_bytes(path.read_bytes()[: size // 2 + 1])
    elif size:
        flip_bit(path, size // 2, bit=3)


@pytest.mark.parametrize("stop", STOPS)
def test_a_tail_of_zeros_is_no_data_and_no_loss(
    stop: str, written: Callable[[str], Written], connect: Callable[..., Any]
) -> None:
    log = written(stop)
    with log.file(".log").open("ab") as file:
        file.write(bytes(4096))

    with running_broker(log.data_dir) as broker:
        wire = connect(broker.port)

        assert wire.values(TOPIC) == log.values
        assert wire.produce_values(TOPIC, b"next").base_offset == len(log.values)
        assert wire.values(TOPIC) == [*log.values, b"next"]


@pytest.mark.parametrize("stop", STOPS)
def test_a_truncated_segment_serves_what_is_left_and_reports_the_rest(
    stop: str,
    written: Callable[[str], Written],
    connect: Callable[..., Any],
    batch_records: Callable[..., Any],
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = written(stop)
    path = log.file(".log")
    path.write_bytes(path.read_bytes()[:-10])
    left = list(enumerate(log.values))[:-PER_BATCH]

    with running_broker(log.data_dir) as broker:
        wire = connect(broker.port)

        assert served(wire, batch_records, 0) == left
        # After a clean stop the checkpoint knows that these offsets were given away.
        next_offset = len(log.values) if stop == "clean" else len(left)
        assert wire.produce_values(TOPIC, b"next").base_offset == next_offset
        assert served(wire, batch_records, next_offset) == [(next_offset, b"next")]
        assert str(path) in caplog.text


@pytest.mark.parametrize("content", [b"", b"0\n1\n", b"garbage", bytes(64), b"0\n1\ndamaged 0 x\n"])
@pytest.mark.parametrize("stop", STOPS)
def test_small_files_full_of_garbage_cost_no_message(
    stop: str, content: bytes, written: Callable[[str], Written], connect: Callable[..., Any]
) -> None:
    log = written(stop)
    for path in (
        *log.data_dir.glob("*-offset-checkpoint"),
        log.partition / "leader-epoch-checkpoint",
        log.partition / "partition.metadata",
    ):
        path.write_bytes(content)

    with running_broker(log.data_dir) as broker:
        wire = connect(broker.port)

        assert wire.values(TOPIC) == log.values
        assert wire.produce_values(TOPIC, b"next").base_offset == len(log.values)
