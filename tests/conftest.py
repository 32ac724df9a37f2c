"""Settings all tests share, and what is skipped where something optional is missing."""

import pytest
from hypothesis import settings

from headrace.errors import JavaNotFoundError
from headrace.java.installation import find_java

# No test times performance: a slow machine is not a failure.
settings.register_profile("headrace", deadline=None, print_blob=True)
settings.load_profile("headrace")

# For the tests of our own pytest plugin; and the one that records what clients can do.
pytest_plugins = ["pytester", "tests.features"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs Java where there is none, with the sentence that says what to install."""
    needy = [item for item in items if item.get_closest_marker("java")]
    if not needy:
        return
    try:
        find_java()
    except JavaNotFoundError as error:
        for item in needy:
            item.add_marker(pytest.mark.skip(reason=str(error)))
