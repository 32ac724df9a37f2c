"""What the tests of runs share."""

import pytest

from headrace.kafka.process import free_ports


@pytest.fixture
def unused_port() -> int:
    """A port nobody listens on."""
    return free_ports(1)[0]
