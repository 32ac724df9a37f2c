"""A disk that is full, read-only or not ours: errors for writers, readers served, nothing lost."""

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, Message, Producer
from kio.schema.errors import ErrorCode

from headrace.testing import BrokerProcess, broker_process, janitor

MIB = 1024 * 1024
TOPIC = "full"
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount file systems")
NOBODY = 65534


def run(*command: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)


@contextlib.contextmanager
def mounted(*arguments: object, at: Path) -> Iterator[Path]:
    at.mkdir()
    done = run("mount", *arguments, at)
    if done.returncode:
        pytest.skip(f"cannot mount: {done.stderr.strip()}")
    try:
        with janitor.entrusted("mount", at):
            yield at
    finally:
        if run("umount", at).returncode:
            run("umount", "--lazy", at)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """24 MB, 8 of which a ballast file can give back."""
    with mounted("-t", "tmpfs", "-o", "size=24m", "tmpfs", at=tmp_path / "disk") as disk:
        (disk / "ballast").write_bytes(bytes(8 * MIB))
        yield disk


@pytest.fixture
def failing_disk(tmp_path: Path) -> Iterator[tuple[Path, Callable[[], None]]]:
    """An ext4 file system, and a call that makes the kernel turn it read-only under us."""
    image = tmp_path / "image"
    with image.open("wb") as file:
        file.truncate(48 * MIB)
    if not shutil.which("mkfs.ext4") or run("mkfs.ext4", "-q", image).returncode:
        pytest.skip("mkfs.ext4 is needed")
    with mounted("-o", "loop,errors=remount-ro", image, at=tmp_path / "disk") as disk:
        device = run("findmnt", "-n", "-o", "SOURCE", disk).stdout.strip()
        trigger = Path("/sys/fs/ext4") / Path(device).name / "trigger_fs_error"
        if not trigger.exists():
            pytest.skip("this kernel cannot fake a file system error")
        yield disk, lambda: trigger.write_text("hardship") and None


def fill_up(
    wire: Any, batch: Callable[..., bytes], start: int = 0
) -> tuple[list[bytes], list[Any]]:
    """Produce until the broker refuses three times: (values acknowledged, refusals)."""
    values: list[bytes] = []
    refusals: list[Any] = []
    while len(refusals) < 3:
        value = b"%d." % (start + len(values)) + b"v" * (MIB // 4)
        ack = wire.produce(TOPIC, 0, batch([value]))
        if ack.error_code == 0:
            values.append(value)
            assert len(values) < 1000, "the disk does not fill"
        else:
            refusals.append(ack)
    return values, refusals


def fill_to_the_last_byte(disk: Path) -> Path:
    path = disk / "more-ballast"
    with path.open("wb", buffering=0) as file:
        for size in (MIB, 4096, 1):
            with contextlib.suppress(OSError):
                while file.write(bytes(size)):
                    pass
    return path


@needs_root
def test_a_full_disk_refuses_messages_and_goes_on_when_there_is_room(
    small_disk: Path,
    connect: Callable[..., Any],
    batch: Callable[..., bytes],
    headrace_command: Callable[..., Any],
) -> None:
    data_dir = small_disk / "data"
    with broker_process(data_dir) as broker:
        wire = connect(broker.port)
        assert wire.create_topic(TOPIC) == 0

        before, refusals = fill_up(wire, batch)

        assert {ErrorCode(refusal.error_code) for refusal in refusals} == {
            ErrorCode.kafka_storage_error  # clients retry it
        }
        assert "No space left" in refusals[0].error_message
        assert wire.values(TOPIC) == before
        assert TOPIC in wire.topics()

        (small_disk / "ballast").unlink()
        after, _ = fill_up(wire, batch, start=len(before))

        assert len(after) > 20, "the room that was made is not used"
        assert wire.values(TOPIC) == before + after
        broker.kill()
    (small_disk / "more-ballast").unlink(missing_ok=True)
    with broker_process(data_dir) as broker:
        assert connect(broker.port).values(TOPIC) == before + after


@needs_root
def test_an_idempotent_producer_waits_for_room_and_delivers_all_once(
    small_disk: Path, connect: Callable[..., Any]
) -> None:
    delivered: dict[int, bytes] = {}
    failures: list[KafkaError] = []

    def on_delivery(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            failures.append(error)
        else:
            delivered[message.offset()] = message.value()

    values = [b"%d." % n + os.urandom(100_000) for n in range(180)]  # 18 of 16 MB
    with broker_process(small_disk / "data") as broker:
        wire = connect(broker.port)
        assert wire.create_topic(TOPIC) == 0
        producer = Producer(
            {
                "bootstrap.servers": broker.bootstrap,
                "enable.idempotence": True,
                "retry.backoff.ms": 20,
                "retry.backoff.max.ms": 50,
                "log_level": 0,
            }
        )
        for value in values:
            producer.produce(TOPIC, value, partition=0, on_delivery=on_delivery)
        while "No space left" not in broker.stderr_text():
            producer.poll(0.05)
            assert len(delivered) < len(values), "the disk did not fill"

        (small_disk / "ballast").unlink()

        assert producer.flush(120) == 0
        assert not failures
        assert wire.values(TOPIC) == values
        assert [delivered[offset] for offset in range(len(values))] == values


@needs_root
def test_with_not_one_byte_left_all_writers_get_errors_and_readers_are_served(
    small_disk: Path, connect: Callable[..., Any], batch: Callable[..., bytes]
) -> None:
    with broker_process(small_disk / "data") as broker:
        wire = connect(broker.port)
        assert wire.create_topic(TOPIC) == 0
        values, _ = fill_up(wire, batch)
        more_ballast = fill_to_the_last_byte(small_disk)

        created = wire.create_topic("another", 3)
        refused = wire.produce(TOPIC, 0, batch([bytes(8192)]))

        assert created == ErrorCode.kafka_storage_error
        assert refused.error_code == ErrorCode.kafka_storage_error
        assert wire.values(TOPIC) == values
        assert wire.topics() == {TOPIC}

        more_ballast.unlink()
        (small_disk / "ballast").unlink()

        assert wire.create_topic("another", 3) == 0
        assert wire.produce_values("another", b"there", partition=2).error_code == 0
        assert wire.produce_values(TOPIC, b"room").error_code == 0
        assert wire.values(TOPIC) == [*values, b"room"]
        assert broker.terminate() == 0


@needs_root
@pytest.mark.parametrize("stop", ["terminate", "kill"])
def test_stopping_on_a_full_disk_loses_nothing(
    stop: str, small_disk: Path, connect: Callable[..., Any], batch: Callable[..., bytes]
) -> None:
    data_dir = small_disk / "data"
    with broker_process(data_dir) as broker:
        wire = connect(broker.port)
        assert wire.create_topic(TOPIC) == 0
        values, _ = fill_up(wire, batch)
        fill_to_the_last_byte(small_disk)
        broker.kill() if stop == "kill" else broker.terminate()
        assert "Traceback" not in broker.stderr_text()

    # It may start on a full disk or say why not; it may not break what is there.
    with broker_process(data_dir, wait=False) as broker:
        with contextlib.suppress(Exception):
            broker.wait_ready()
        logged = broker.stderr_text()
        if not broker.ready_line:
            assert "No space left" in logged
            assert broker.process.returncode not in (0, None)
        assert "Traceback" not in logged

    (small_disk / "ballast").unlink()
    with broker_process(data_dir) as broker:
        wire = connect(broker.port)
        assert wire.values(TOPIC) == values
        assert wire.produce_values(TOPIC, b"room").base_offset == len(values)


@needs_root
def test_a_file_system_that_turns_read_only_refuses_writers_and_serves_readers(
    failing_disk: tuple[Path, Callable[[], None]],
    connect: Callable[..., Any],
    batch: Callable[..., bytes],
) -> None:
    disk, fail = failing_disk
    values = [b"%d." % n + b"v" * 1000 for n in range(50)]
    with broker_process(disk / "data") as broker:
        wire = connect(broker.port)
        assert wire.create_topic(TOPIC) == 0
        for value in values:
            assert wire.produce(TOPIC, 0, batch([value])).error_code == 0

        fail()
        refused = wire.produce_values(TOPIC, b"too late")
        created = wire.create_topic("another")

        assert refused.error_code == ErrorCode.kafka_storage_error
        assert created == ErrorCode.kafka_storage_error
        assert wire.values(TOPIC)[: len(values)] == values
        assert wire.topics() == {TOPIC}
        broker.kill()
        assert "Traceback" not in broker.stderr_text()

    assert run("umount", disk).returncode == 0
    assert run("mount", "-o", "loop", disk.parent / "image", disk).returncode == 0
    with broker_process(disk / "data") as broker:
        assert connect(broker.port).values(TOPIC)[: len(values)] == values


# --- refused at the start


def assert_refused(done: Any, *facts: object) -> None:
    assert done.returncode not in (0, None)
    assert done.stdout == ""
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    for fact in facts:
        assert str(fact) in lines[0]


def test_a_data_directory_that_is_a_file_is_refused(
    tmp_path: Path, headrace_command: Callable[..., Any]
) -> None:
    path = tmp_path / "file"
    path.write_text("not a directory")

    done = headrace_command("serve", "--port", 0, "--http-port", -1, "--data-dir", path)

    assert_refused(done, path)
    assert path.read_text() == "not a directory"


@needs_root
def test_a_read_only_data_directory_is_refused(
    tmp_path: Path, connect: Callable[..., Any], headrace_command: Callable[..., Any]
) -> None:
    with mounted("-t", "tmpfs", "-o", "size=24m", "tmpfs", at=tmp_path / "disk") as disk:
        with broker_process(disk / "data") as broker:
            wire = connect(broker.port)
            assert wire.create_topic(TOPIC) == 0
            assert wire.produce_values(TOPIC, b"kept").error_code == 0
            assert broker.terminate() == 0
        assert run("mount", "-o", "remount,ro", disk).returncode == 0

        done = headrace_command(
            "serve", "--port", 0, "--http-port", -1, "--data-dir", disk / "data"
        )

        assert_refused(done, disk / "data", "Read-only file system")
        assert run("mount", "-o", "remount,rw", disk).returncode == 0
        with broker_process(disk / "data") as broker:
            assert connect(broker.port).values(TOPIC) == [b"kept"]


@needs_root
@pytest.mark.skipif(not shutil.which("setpriv"), reason="setpriv is needed to be somebody else")
def test_a_directory_of_somebody_else_is_refused(
    tmp_path: Path, headrace_command: Callable[..., Any]
) -> None:
    somebody = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
    if run(*somebody, sys.executable, "-c", "import headrace").returncode:
        pytest.skip("others may not read this installation")
    for parent in (tmp_path, *tmp_path.parents[:2]):
        parent.chmod(0o755)
    data_dir = tmp_path / "data"
    data_dir.mkdir(mode=0o755)

    done = headrace_command(
        "serve", "--port", 0, "--http-port", -1, "--data-dir", data_dir, prefix=somebody
    )

    assert_refused(done, data_dir, "Permission denied")


def test_the_process_that_has_a_directory_is_named(
    tmp_path: Path, headrace_command: Callable[..., Any]
) -> None:
    with broker_process(tmp_path) as broker:
        done = headrace_command("serve", "--port", 0, "--http-port", -1, "--data-dir", tmp_path)

        assert_refused(done, tmp_path, f"in use by process {broker.pid}", "--data-dir")
        assert is_alive(broker)


def test_a_busy_port_is_refused_and_nothing_is_left_in_the_directory(
    tmp_path: Path, headrace_command: Callable[..., Any]
) -> None:
    with broker_process(tmp_path / "first") as broker:
        second = tmp_path / "second"

        done = headrace_command(
            "serve", "--port", broker.port, "--http-port", -1, "--data-dir", second
        )

        assert_refused(done, broker.port, "in use", "--port")
        assert not list(second.glob("*"))
        assert is_alive(broker)


def is_alive(broker: BrokerProcess) -> bool:
    return broker.process.poll() is None
