import pickle

import pytest

from headrace.client.errors import BusError, PositionError, PropertyError, UnreachableError
from headrace.errors import ConfigError, HeadraceError, InvalidConfigError
from headrace.properties import Assignment


@pytest.mark.parametrize(
    "error",
    [
        BusError(None, "a sentence", is_passing=True, is_timeout=True),
        PropertyError(Assignment("acks", "9", "client.properties:3"), "write 0, 1 or all"),
        UnreachableError("127.0.0.1:9092"),
        PositionError("yesterday", "write a time"),
        ConfigError("start", "x", "write a position"),
        InvalidConfigError("num.partitions", 0, "at least 1", source="--set"),
    ],
)
def test_an_error_of_another_process_is_the_same(error: HeadraceError) -> None:
    again = pickle.loads(pickle.dumps(error))

    assert type(again) is type(error)
    assert (str(again), vars(again)) == (str(error), vars(error))
