"""The bus the contract tests run on: each engine in turn, one start for all tests."""

from collections.abc import Iterator

import pytest
from tests.contracts.bus import Bus
from tests.contracts.crash import Crash, crash
from tests.contracts.differences import broken_on
from tests.contracts.engines import running_engine

ENGINES = [
    "embedded",
    pytest.param("kafka", marks=pytest.mark.java),
    # The three nodes start more slowly than a test may take.
    pytest.param("cluster", marks=[pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(1800)]),
]
_VAIN_WAIT_S = 2.0


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "differs(name): not so on the engines that `name` lists")


@pytest.fixture(scope="session", params=ENGINES)
def engine_name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="session")
def bus(engine_name: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bus]:
    """A bus on one of the engines. The tests share it: topics and groups are theirs alone."""
    with running_engine(engine_name, tmp_path_factory.mktemp(engine_name)) as engine:
        bus = Bus(engine)
        yield bus
        bus.close()


@pytest.fixture(scope="session")
def crashed(bus: Bus) -> Crash:
    """The bus after one crash."""
    return crash(bus)


@pytest.fixture(autouse=True)
def _declared_difference(request: pytest.FixtureRequest) -> Iterator[None]:
    """A promise an engine does not keep must fail there: the page says that it does."""
    marker = request.node.get_closest_marker("differs")
    if marker is None or request.getfixturevalue("engine_name") not in broken_on(marker.args[0]):
        yield
        return
    request.node.add_marker(pytest.mark.xfail(reason=f"docs/engines.md: {marker.args[0]}"))
    bus: Bus = request.getfixturevalue("bus")
    bus.patience_s, patience_s = _VAIN_WAIT_S, bus.patience_s
    yield
    bus.patience_s = patience_s


@pytest.fixture
def topic(bus: Bus) -> str:
    """A new topic of one partition."""
    return bus.new_topic()


@pytest.fixture
def group(request: pytest.FixtureRequest) -> str:
    """A group nobody else uses; a test runs once on an engine."""
    return f"group-{request.node.name}"
