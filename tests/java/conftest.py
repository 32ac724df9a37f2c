from collections.abc import Iterator

import pytest
from tests.java.maven_repository import Repository


@pytest.fixture
def repository() -> Iterator[Repository]:
    repository = Repository()
    yield repository
    repository.close()
