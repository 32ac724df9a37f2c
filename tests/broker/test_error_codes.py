import importlib
import inspect

import pytest
from kio.schema.errors import ErrorCode

from headrace.broker.error_codes import _CODES, code_for
from headrace.errors import EngineError, HeadraceError
from headrace.log.errors import OffsetOutOfRangeError

# What a request can meet. Other packages' errors end tools around the broker.
PACKAGES = ("", "broker.", "coordinators.", "log.", "protocol.", "records.", "settings.")
KINDS = {
    kind
    for package in PACKAGES
    for _, kind in inspect.getmembers(
        importlib.import_module(f"headrace.{package}errors"), inspect.isclass
    )
    if issubclass(kind, HeadraceError)
}


@pytest.mark.parametrize(
    "kind",
    sorted(KINDS - {HeadraceError, EngineError}, key=lambda kind: kind.__name__),
    ids=lambda kind: kind.__name__,
)
def test_every_error_has_a_kafka_code(kind: type[HeadraceError]) -> None:
    assert kind in _CODES


def test_a_new_subclass_takes_the_code_of_its_parent() -> None:
    class SpecialError(OffsetOutOfRangeError):
        pass

    assert code_for(SpecialError(1, 2, 3)) is ErrorCode.offset_out_of_range
