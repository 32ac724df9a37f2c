import inspect
from pathlib import Path

import pytest
from kio.schema.errors import ErrorCode

from headrace import errors
from headrace.broker.error_codes import _CODES, code_for

# These are raised by tools around the broker; no client ever waits for their code.
NOT_FOR_CLIENTS = (
    errors.EngineError,
    errors.MirrorError,
    errors.PipelineError,
)
ALL = [
    kind
    for _, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, errors.HeadraceError) and kind is not errors.HeadraceError
]


@pytest.mark.parametrize(
    "kind",
    [kind for kind in ALL if not issubclass(kind, NOT_FOR_CLIENTS)],
    ids=lambda kind: kind.__name__,
)
def test_every_error_has_a_kafka_code(kind: type[errors.HeadraceError]) -> None:
    assert kind in _CODES


def test_a_new_subclass_takes_the_code_of_its_parent() -> None:
    class Special(errors.OffsetOutOfRangeError):
        pass

    assert code_for(Special(1, 2, 3)) is ErrorCode.offset_out_of_range


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_the_tree_drawn_in_the_module_names_every_error(kind: type[errors.HeadraceError]) -> None:
    assert kind.__name__ in (errors.__doc__ or "")


def test_a_corrupt_batch_names_file_and_position() -> None:
    error = errors.CorruptBatchError(Path("a/0.log"), 61, "CRC does not match")

    assert str(error) == "a/0.log is damaged at byte 61: CRC does not match"
