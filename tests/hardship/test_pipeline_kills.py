"""The Spark driver and the broker die at random moments while a feed runs: each record counts once.

What lake and table hold in the end is compared with what the log holds, record by record, by a few
lines of Python that know nothing of Spark.
"""

import contextlib
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.hardship.pipelines.drivers import Driver
from tests.hardship.pipelines.feed import (
    SCHEMA,
    TOPIC,
    Feed,
    bad_places,
    create_topic,
    expected_table,
    read_log,
)
from tests.hardship.pipelines.results import rows_in_lake, rows_in_table

from headrace.testing import BrokerProcess, broker_process

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(7200)]

KILLS = 20
ROWS_PER_BATCH = "3000"


class Stage:
    """A broker, a feed and two pipelines, with their places on disk."""

    def __init__(self, directory: Path, port: int) -> None:
        self.lake = directory / "lake"
        self.database = directory / "readings.db"
        self._directory = directory
        self._port = port
        self._brokers = contextlib.ExitStack()
        self.broker = self.start_broker()
        self.bootstrap = self.broker.bootstrap
        create_topic(self.bootstrap)
        common = ("--topic", TOPIC, "--max-rows", ROWS_PER_BATCH)
        archive = (*common, "--to", f"parquet:{self.lake}")
        table = (*common, "--to", f"sqlite:{self.database}", "--option", f"schema={SCHEMA}")
        table = (*table, "--option", "key=sensor", "--option", "table=readings")
        self.drivers = [
            Driver("archive", directory, self.bootstrap, archive),
            Driver("table", directory, self.bootstrap, table),
        ]

    def start_broker(self) -> BrokerProcess:
        process = broker_process(self._directory / "data", port=self._port)
        self.broker = self._brokers.enter_context(process)
        return self.broker

    def close(self) -> None:
        for driver in self.drivers:
            driver.close()
        self._brokers.close()


@pytest.fixture
def stage(tmp_path: Path, port: int) -> Iterator[Stage]:
    stage = Stage(tmp_path, port)
    yield stage
    stage.close()


def check(stage: Stage) -> None:
    """Lake and table equal what the log says, each record once."""
    records = read_log(stage.bootstrap)

    assert rows_in_lake(stage.lake) == [tuple(record) for record in records]
    assert rows_in_table(stage.database) == expected_table(records)
    assert bad_places(records)  # the feed did write some


def test_kills_of_the_driver_lose_and_repeat_nothing(stage: Stage) -> None:
    rng = random.Random(5)
    with Feed(stage.bootstrap, seed=5):
        for number in range(KILLS):
            for driver in stage.drivers:
                driver.start()
            for driver in stage.drivers:
                driver.advance(rng.randrange(1, 4))
            time.sleep(rng.uniform(0, 1.5))  # the moment of the kill is random, not synchronised
            for driver in stage.drivers:
                driver.kill(is_java_first=number % 4 == 3)
    for driver in stage.drivers:
        driver.finish()

    check(stage)


def test_kills_of_the_broker_lose_and_repeat_nothing(stage: Stage) -> None:
    rng = random.Random(6)
    for driver in stage.drivers:
        driver.start()
    with Feed(stage.bootstrap, seed=6):
        for _ in range(KILLS):
            for driver in stage.drivers:
                driver.advance(rng.randrange(1, 3))
            time.sleep(rng.uniform(0, 1.5))
            stage.broker.kill()
            stage.start_broker()
    for driver in stage.drivers:
        driver.advance(1)
        assert driver.stop() == 0, driver.told()
        driver.finish()

    check(stage)
