"""The three databases: SQLite always, the servers wherever they are installed."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from itertools import count
from pathlib import Path

import pytest
from tests.pipelines.sinks.sql.tables import TestTable

from tools.databases import (
    DatabaseServer,
    DatabaseServerError,
    running_mariadb,
    running_postgresql,
)

_numbers = count(1)


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[DatabaseServer]:
    yield from _server(running_postgresql())


@pytest.fixture(scope="session")
def mariadb_server() -> Iterator[DatabaseServer]:
    yield from _server(running_mariadb())


def _server(starting: AbstractContextManager[DatabaseServer]) -> Iterator[DatabaseServer]:
    try:
        server = starting.__enter__()
    except DatabaseServerError as error:
        pytest.skip(str(error))
    yield server
    starting.__exit__(None, None, None)


@pytest.fixture(params=["sqlite", "postgresql", "mariadb"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Each database in turn."""
    if request.param == "sqlite":
        return f"sqlite:{tmp_path / 'test.db'}"
    server: DatabaseServer = request.getfixturevalue(f"{request.param}_server")
    return server.url


@pytest.fixture
def table(url: str) -> Iterator[TestTable]:
    """A table nobody has used, in each database in turn."""
    with TestTable(url, f"t{next(_numbers)}") as made:
        yield made
