"""`kill -9` at random moments under load: what was acknowledged is there, in order, once.

The moment of each kill is a count of acknowledged messages drawn from a seeded generator, so
it falls anywhere between two answers of the broker and needs no clock.
"""

import contextlib
import random
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from headrace.testing import BrokerProcess, broker_process

PARTITIONS = 4
MAX_UNDELIVERED = 1_500
STALLED_SECONDS = 180.0
KILLS = [
    10,
    pytest.param(200, marks=[pytest.mark.slow, pytest.mark.timeout(3600)], id="200"),
]
FEW_KILLS = [
    3,
    pytest.param(40, marks=[pytest.mark.slow, pytest.mark.timeout(1800)], id="40"),
]


class Load:
    """A producer that outlives the broker, and a ledger of what it was promised."""

    def __init__(self, bootstrap: str, topic: str, rng: random.Random, **config: object) -> None:
        self.topic = topic
        self.sent = [0] * PARTITIONS
        self.acknowledged: list[dict[int, bytes]] = [{} for _ in range(PARTITIONS)]
        self.count = 0
        self.failures: list[KafkaError] = []
        self._rng = rng
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "linger.ms": 1,
                "batch.num.messages": 100,
                "message.timeout.ms": 300_000,
                "retries": 1_000_000,
                "retry.backoff.ms": 10,
                "reconnect.backoff.ms": 10,
                "reconnect.backoff.max.ms": 50,
                "log_level": 0,
                "error_cb": self._on_error,
                **config,
            }
        )

    def run_until(self, count: int) -> None:
        """Produce until this many messages were acknowledged in all; others stay in flight."""
        last_progress, last_count = time.monotonic(), self.count
        while self.count < count:
            self.burst()
            self._producer.poll(0.01)
            if self.count > last_count:
                last_progress, last_count = time.monotonic(), self.count
            assert time.monotonic() - last_progress < STALLED_SECONDS, "no message is acknowledged"
            assert not self.failures

    def burst(self) -> None:
        """Hand some messages to the producer, unless it has many it could not deliver."""
        if len(self._producer) > MAX_UNDELIVERED:
            return
        for _ in range(self._rng.randint(1, 200)):
            partition = self._rng.randrange(PARTITIONS)
            value = b"%d." % self.sent[partition] + b"x" * self._rng.randint(0, 800)
            self.sent[partition] += 1
            self._producer.produce(
                self.topic, value, partition=partition, on_delivery=self._on_delivery
            )

    def flush(self) -> None:
        assert self._producer.flush(STALLED_SECONDS) == 0
        assert not self.failures

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failures.append(error)
            return
        self.count += 1
        self.acknowledged[message.partition()][message.offset()] = message.value()

    def _on_error(self, error: KafkaError) -> None:
        if error.fatal():
            self.failures.append(error)


class Churn:
    """Creates and deletes topics on a thread of its own, noting what the broker confirmed."""

    def __init__(self, bootstrap: str) -> None:
        self.created: set[str] = set()
        self.deleted: set[str] = set()
        self._bootstrap = bootstrap
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="churn")

    def __enter__(self) -> "Churn":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _run(self) -> None:
        config = {"bootstrap.servers": self._bootstrap, "log_level": 0,
                  "reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 50}  # fmt: skip
        admin = AdminClient(config)
        number = 0
        while not self._is_over.is_set():
            name = f"churn-{number}"
            number += 1
            topic = NewTopic(name, 3, 1)
            if not self._done(admin.create_topics([topic], request_timeout=2)[name]):
                continue
            self.created.add(name)
            if number % 2:
                self.created.discard(name)
                if self._done(admin.delete_topics([name], request_timeout=2)[name]):
                    self.deleted.add(name)

    @staticmethod
    def _done(future: Any) -> bool:
        """False: nobody knows whether it happened, for the broker died over it."""
        try:
            future.result(120)
        except (KafkaException, TimeoutError):
            return False
        return True


def seed_of(request: pytest.FixtureRequest) -> random.Random:
    return random.Random(request.node.name)


def kill_under_load(
    loads: list[Load], data_dir: Path, port: int, kills: int, rng: random.Random, **settings: object
) -> None:
    """Start, load, kill, again and again; a last start lets the producers finish."""
    for _ in range(kills):
        with broker_process(data_dir, port=port, **settings) as broker:
            target = loads[0].count + rng.randint(0, 1_500)
            while loads[0].count < target:
                for load in loads:
                    load.run_until(min(load.count + rng.randint(1, 200), target))
            for load in loads:
                load.burst()
            broker.kill()


def assert_exactly_once(load: Load, wire: Any) -> None:
    for partition in range(PARTITIONS):
        records = wire.read_all(load.topic, partition)
        numbers = [int(record.value.split(b".")[0]) for record in records]
        assert numbers == list(range(load.sent[partition]))
        found = {record.offset: record.value for record in records}
        assert load.acknowledged[partition] == found


def assert_nothing_lost(load: Load, wire: Any) -> None:
    """At least once: retries without a sequence may store a message twice."""
    for partition in range(PARTITIONS):
        found = {record.offset: record.value for record in wire.read_all(load.topic, partition)}
        assert load.acknowledged[partition].items() <= found.items()


def idempotent(bootstrap: str, rng: random.Random, topic: str = "load", **config: object) -> Load:
    return Load(bootstrap, topic, rng, **{"enable.idempotence": True, "acks": "all", **config})


@pytest.fixture
def create_topics(connect: Callable[..., Any], tmp_path: Path, port: int) -> Callable[..., None]:
    """Topics are made by a first broker, which leaves cleanly."""

    def create(*names: str, **configs: object) -> None:
        with broker_process(tmp_path / "data", port=port) as broker:
            wire = connect(broker.port)
            for name in names:
                assert wire.create_topic(name, PARTITIONS, **configs) == 0
            assert broker.terminate() == 0

    return create


@pytest.mark.parametrize("kills", KILLS)
def test_acknowledged_messages_survive_kills_in_order_and_once(
    kills: int,
    tmp_path: Path,
    port: int,
    connect: Callable[..., Any],
    create_topics: Callable[..., None],
    headrace_command: Callable[..., Any],
    request: pytest.FixtureRequest,
) -> None:
    rng = seed_of(request)
    data_dir = tmp_path / "data"
    create_topics("load")
    load = idempotent(f"127.0.0.1:{port}", rng)

    kill_under_load([load], data_dir, port, kills, rng)

    with broker_process(data_dir, port=port) as broker:
        load.flush()
        assert_exactly_once(load, connect(broker.port))
        assert broker.terminate() == 0
    verified = headrace_command("log", "verify", data_dir)
    assert verified.returncode == 0, verified.stdout + verified.stderr


@pytest.mark.parametrize("kills", FEW_KILLS)
def test_kills_between_many_rolls_lose_nothing(
    kills: int,
    tmp_path: Path,
    port: int,
    connect: Callable[..., Any],
    create_topics: Callable[..., None],
    headrace_command: Callable[..., Any],
    request: pytest.FixtureRequest,
) -> None:
    rng = seed_of(request)
    data_dir = tmp_path / "data"
    create_topics("load", segment_ms=5)
    load = idempotent(f"127.0.0.1:{port}", rng, **{"compression.type": "lz4"})

    kill_under_load([load], data_dir, port, kills, rng)

    with broker_process(data_dir, port=port) as broker:
        load.flush()
        assert_exactly_once(load, connect(broker.port))
        assert len(list((data_dir / "load-0").glob("*.log"))) > 1, "nothing was rolled"
        assert broker.terminate() == 0
    verified = headrace_command("log", "verify", data_dir)
    assert verified.returncode == 0, verified.stdout + verified.stderr


@pytest.mark.parametrize("kills", FEW_KILLS)
def test_acks_1_survives_kills_too_for_the_page_cache_does(
    kills: int,
    tmp_path: Path,
    port: int,
    connect: Callable[..., Any],
    create_topics: Callable[..., None],
    request: pytest.FixtureRequest,
) -> None:
    rng = seed_of(request)
    data_dir = tmp_path / "data"
    create_topics("load", "quick")
    bootstrap = f"127.0.0.1:{port}"
    load = idempotent(bootstrap, rng)
    quick = Load(bootstrap, "quick", rng, acks=1)

    kill_under_load([load, quick], data_dir, port, kills, rng)

    with broker_process(data_dir, port=port) as broker:
        load.flush()
        quick.flush()
        wire = connect(broker.port)
        assert_exactly_once(load, wire)
        assert_nothing_lost(quick, wire)


@pytest.mark.parametrize("kills", FEW_KILLS)
def test_topics_come_and_go_between_kills_as_confirmed(
    kills: int,
    tmp_path: Path,
    port: int,
    connect: Callable[..., Any],
    create_topics: Callable[..., None],
    request: pytest.FixtureRequest,
) -> None:
    rng = seed_of(request)
    data_dir = tmp_path / "data"
    create_topics("load")
    load = idempotent(f"127.0.0.1:{port}", rng)

    with Churn(f"127.0.0.1:{port}") as churn:
        kill_under_load([load], data_dir, port, kills, rng)
        with broker_process(data_dir, port=port):
            load.flush()

    with broker_process(data_dir, port=port) as broker:
        wire = connect(broker.port)
        topics = wire.topics()
        assert churn.created, "no topic was created between the kills"
        assert churn.deleted, "no topic was deleted between the kills"
        assert churn.created <= topics
        assert not churn.deleted & topics
        assert_exactly_once(load, wire)
        on_disk = {path.name.rpartition("-")[0] for path in data_dir.iterdir() if path.is_dir()}
        assert not churn.deleted & on_disk


def test_a_kill_during_recovery_loses_nothing(
    tmp_path: Path,
    port: int,
    connect: Callable[..., Any],
    create_topics: Callable[..., None],
    until: Callable[..., Any],
    request: pytest.FixtureRequest,
) -> None:
    rng = seed_of(request)
    data_dir = tmp_path / "data"
    create_topics("load")
    load = idempotent(f"127.0.0.1:{port}", rng)
    kill_under_load([load], data_dir, port, 1, rng)

    for _ in range(3):
        with broker_process(data_dir, port=port, wait=False) as broker:
            until(lambda: has_log_open(broker) or broker.process.poll() is not None, "recovery")
            broker.kill()

    with broker_process(data_dir, port=port) as broker:
        load.flush()
        assert_exactly_once(load, connect(broker.port))


def has_log_open(broker: BrokerProcess) -> bool:
    with contextlib.suppress(OSError):
        links = list(Path(f"/proc/{broker.pid}/fd").iterdir())
        for link in links:
            with contextlib.suppress(OSError):
                if link.readlink().suffix == ".log":
                    return True
    return False


def test_the_start_after_a_kill_names_what_it_cut_and_where(
    tmp_path: Path, connect: Callable[..., Any], batch: Callable[..., bytes]
) -> None:
    with broker_process(tmp_path) as broker:
        wire = connect(broker.port)
        assert wire.create_topic("torn") == 0
        assert wire.produce_values("torn", b"one", b"two").error_code == 0
        broker.kill()
    log = tmp_path / "torn-0" / f"{0:020d}.log"
    size = log.stat().st_size
    half = batch([b"never acknowledged"], base_offset=2)[:-10]
    with log.open("ab") as file:
        file.write(half)

    with broker_process(tmp_path) as broker:
        repairs = [line for line in broker.stderr_text().splitlines() if "repaired" in line]
        wire = connect(broker.port)

        assert len(repairs) == 1
        assert f"{log}: cut {len(half)} bytes at byte {size}" in repairs[0]
        assert wire.values("torn") == [b"one", b"two"]
        assert wire.produce_values("torn", b"three").base_offset == 2


def test_a_start_after_a_kill_with_nothing_torn_reports_no_repair(
    tmp_path: Path, connect: Callable[..., Any]
) -> None:
    with broker_process(tmp_path) as broker:
        wire = connect(broker.port)
        assert wire.create_topic("whole") == 0
        assert wire.produce_values("whole", b"one").error_code == 0
        broker.kill()

    with broker_process(tmp_path) as broker:
        assert "repaired" not in broker.stderr_text()
        assert connect(broker.port).values("whole") == [b"one"]
