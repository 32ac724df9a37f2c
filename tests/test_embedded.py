"""The broker inside a process, as its users start and stop it."""

import asyncio
import signal
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from headrace import (
    AsyncConsumer,
    AsyncProducer,
    Broker,
    Bus,
    BusError,
    ConfigError,
    Consumer,
    HeadraceError,
    Producer,
)
from headrace.client.admin import Admin

PATIENCE_S = 120.0


def texts(bus: Bus, count: int) -> list[str]:
    with Consumer(bus, "orders", timeout_s=PATIENCE_S) as consumer:
        found = list[str]()
        while len(found) < count:
            found += [each.text for each in consumer.poll(PATIENCE_S)]
    return found


def test_its_data_stay_where_they_were_put(tmp_path: Path) -> None:
    for word in ("one", "two"):
        with Broker(data_dir=tmp_path / "data") as bus, Producer(bus) as producer:
            producer.send("orders", word)

    with Broker(str(tmp_path / "data")) as bus:
        assert texts(bus, 2) == ["one", "two"]


def test_without_a_directory_nothing_stays_and_nobody_else_hears_of_it() -> None:
    broker = Broker()
    with broker as bus:
        assert bus.addresses == [("127.0.0.1", broker.port)]
        assert broker.data_dir.is_dir()
        with Producer(bus) as producer:
            producer.send("orders", "one")
    assert not broker.data_dir.exists()
    broker.stop()
    with pytest.raises(BusError, match="no broker answers"):
        Admin(bus).cluster_id()


def test_its_settings_are_kafkas_and_one_it_has_not_is_told() -> None:
    with Broker(num_partitions=3) as bus:
        admin = Admin(bus, timeout_s=PATIENCE_S)
        admin.create_topic("orders")
        assert len(admin.metadata().topics["orders"].partitions) == 3

    broker = Broker(num_partitoins=3)
    with pytest.raises(ConfigError, match=r"num\.partitoins"), broker:
        pass
    assert not broker.data_dir.exists() or broker.data_dir == Path()


def test_a_directory_has_one_broker_and_a_broker_starts_once(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    with broker as bus:
        with pytest.raises(RuntimeError, match="already started"):
            broker.start()
        with pytest.raises(HeadraceError, match=str(tmp_path)):
            Broker(tmp_path).start()
        assert Admin(bus, timeout_s=PATIENCE_S).cluster_id()


def test_it_starts_and_stops_beside_an_event_loop() -> None:
    async def main() -> str:
        async with Broker() as bus:
            async with AsyncProducer(bus) as producer:
                await (await producer.send("orders", "one"))
            async with AsyncConsumer(bus, "orders", timeout_s=PATIENCE_S) as consumer:
                async for message in consumer:
                    return message.text
        raise AssertionError

    assert asyncio.run(main()) == "one"


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary directories are made."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def broker_threads() -> Callable[[], list[threading.Thread]]:
    """The threads of brokers that were started since; other tests keep theirs."""
    former = set(threading.enumerate())

    def threads() -> list[threading.Thread]:
        since = [each for each in threading.enumerate() if each not in former]
        return [each for each in since if each.name == "headrace-broker"]

    return threads


def test_ctrl_c_while_it_starts_leaves_nothing(
    temporary: Path, broker_threads: Callable[[], list[threading.Thread]]
) -> None:
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)

    class Pressed(Broker):
        async def _serve(self) -> None:
            signal.raise_signal(signal.SIGINT)  # the main thread hears it
            await super()._serve()

    try:
        with pytest.raises(KeyboardInterrupt), Pressed():
            pass
    finally:
        signal.signal(signal.SIGINT, previous)

    assert broker_threads() == [*temporary.iterdir()] == []


def test_a_start_that_is_cancelled_leaves_nothing(
    temporary: Path, broker_threads: Callable[[], list[threading.Thread]]
) -> None:
    async def main() -> None:
        async def enter() -> None:
            async with Broker():
                raise AssertionError("entered")

        task = asyncio.create_task(enter())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert broker_threads() == [*temporary.iterdir()] == []


def test_two_threads_that_start_one_broker_start_it_once(
    temporary: Path, broker_threads: Callable[[], list[threading.Thread]]
) -> None:
    broker = Broker()
    failures = list[BaseException]()

    def start() -> None:
        try:
            broker.start()
        except RuntimeError as error:
            failures.append(error)

    threads = [threading.Thread(target=start) for _ in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(PATIENCE_S)

    assert (len(failures), len(broker_threads())) == (2, 1)
    broker.stop()
    assert broker_threads() == [*temporary.iterdir()] == []


def test_before_it_was_started_it_has_no_bus() -> None:
    with pytest.raises(RuntimeError, match="not started"):
        Broker().bus  # noqa: B018
