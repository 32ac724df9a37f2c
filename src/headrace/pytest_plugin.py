"""pytest fixtures: a broker for tests that need Kafka, ready in a third of a second.

`headrace_broker` is a fresh `RunningBroker` for each test, `headrace_bootstrap` its address;
`headrace_session_broker` and `headrace_session_bootstrap` are one broker for the whole run.
`@pytest.mark.headrace(num_partitions=3)` gives one test's broker settings of Kafka's.
Nothing of headrace is imported until a test asks for a fixture.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from headrace.testing import RunningBroker

_STORES = ("memory", "disk")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options `--headrace-store` and `headrace_settings`."""
    parser.getgroup("headrace").addoption(
        "--headrace-store",
        choices=_STORES,
        default=None,
        help="where the brokers of the headrace fixtures keep their files: memory (a tmpfs, "
        "where there is one) or disk (the temporary directory); default memory",
    )
    parser.addini("headrace_store", "see --headrace-store", default="memory")
    parser.addini(
        "headrace_settings",
        "settings for the brokers of the headrace fixtures, a line each: NAME=VALUE",
        type="linelist",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line(
        "markers", "headrace(**settings): settings for this test's headrace_broker"
    )


@pytest.fixture
def headrace_broker(request: pytest.FixtureRequest) -> "Iterator[RunningBroker]":
    """A fresh broker with `faults`, `requests`, `advance` and `restart`, gone after the test."""
    marker = request.node.get_closest_marker("headrace")
    yield from _broker(request.config, marker.kwargs if marker else {})


@pytest.fixture
def headrace_bootstrap(headrace_broker: "RunningBroker") -> str:
    """The fresh broker's address, for `bootstrap.servers`."""
    return headrace_broker.bootstrap


@pytest.fixture(scope="session")
def headrace_session_broker(request: pytest.FixtureRequest) -> "Iterator[RunningBroker]":
    """One broker for all tests of the run."""
    yield from _broker(request.config, {})


@pytest.fixture(scope="session")
def headrace_session_bootstrap(headrace_session_broker: "RunningBroker") -> str:
    """The shared broker's address, for `bootstrap.servers`."""
    return headrace_session_broker.bootstrap


def _broker(config: pytest.Config, settings: dict[str, object]) -> "Iterator[RunningBroker]":
    from headrace.testing import running_broker

    store = config.getoption("--headrace-store") or config.getini("headrace_store")
    if store not in _STORES:
        raise pytest.UsageError(f"headrace_store={store}: use one of {', '.join(_STORES)}")
    all_settings = {**_from_ini(config), **settings}
    with running_broker(watched=True, in_memory=store == "memory", **all_settings) as broker:  # type: ignore[arg-type]
        yield broker


def _from_ini(config: pytest.Config) -> dict[str, object]:
    settings: dict[str, object] = {}
    for line in config.getini("headrace_settings"):
        name, separator, value = line.partition("=")
        if not separator:
            raise pytest.UsageError(f"headrace_settings: {line!r} is not NAME=VALUE")
        settings[name.strip()] = value.strip()
    return settings
