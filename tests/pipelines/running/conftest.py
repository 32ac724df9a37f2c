"""What the tests of runs share."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.pipelines.running.stage import JsonFiles, Stage

from headrace.client.bus import Bus
from headrace.kafka.process import free_ports
from headrace.testing import RunningBroker, running_broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def unused_port() -> int:
    """A port nobody listens on."""
    return free_ports(1)[0]


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    with running_broker() as broker:
        yield broker


@pytest.fixture(scope="module")
def bus(broker: RunningBroker) -> Bus:
    return Bus(broker.bootstrap)


@pytest.fixture
def stage(spark: "SparkSession", bus: Bus, tmp_path: Path) -> Iterator[Stage]:
    from pyspark import cloudpickle

    # Workers explain bad records; they know our package, not its tests.
    cloudpickle.register_pickle_by_value(sys.modules[JsonFiles.__module__])
    stage = Stage(spark, bus, tmp_path)
    yield stage
    stage.close()
