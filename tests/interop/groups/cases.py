"""Which kinds of members a scenario runs with: a core in `make test`, all in `make test-all`."""

from collections.abc import Callable, Iterable

import pytest
from tests.interop.groups.kinds import KINDS, Kind

# One way of each Python client and of kcat: what a user is most likely to have.
CORE = frozenset({"confluent-cooperative-sticky", "kafka-python-range", "aiokafka-roundrobin"})
CORE_WITH_KCAT = CORE | {"kcat-range"}


def cases(
    is_fit: Callable[[Kind], bool] = lambda kind: True, core: Iterable[str] = CORE_WITH_KCAT
) -> list[object]:
    """All kinds that fit, as parameters of a test; those outside the core are slow."""
    return [_case(kind, is_core=kind.name in core) for kind in KINDS.values() if is_fit(kind)]


def _case(kind: Kind, *, is_core: bool) -> object:
    marks = [] if is_core else [pytest.mark.slow]
    if kind.client == "java":
        marks.append(pytest.mark.java)
    return pytest.param(kind, id=kind.name, marks=marks)


def need(*kinds: Kind) -> None:
    """Skip the test where one of the clients is not to be had."""
    for kind in kinds:
        if reason := kind.why_absent():
            pytest.skip(reason)
