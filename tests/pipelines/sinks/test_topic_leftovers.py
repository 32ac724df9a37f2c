from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from tests.pipelines.sinks.topics import Seen, produce

from headrace.client.admin import Admin
from headrace.client.bus import Bus
from headrace.pipelines.sinks import topic_leftovers
from headrace.pipelines.sinks.topic_leftovers import Leftovers
from headrace.pipelines.sinks.topic_marks import SOURCE_HEADER, RecordPlace, mark_of
from headrace.pipelines.spans import Batch, Log, Spans
from headrace.testing import RunningBroker, running_broker

TOPIC = "target"
STARTS, ENDS = {(TOPIC, 0): 1}, {(TOPIC, 0): 6}


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    with running_broker() as running:
        produce(running.bootstrap, TOPIC, [made_from(each) for each in (0, 1, 2, 3)])
        produce(running.bootstrap, TOPIC, [made_from(3, "other"), made_from(3), made_from(4)])
        yield running


def made_from(offset: int, app_id: str = "app") -> Seen:
    mark = mark_of(app_id, RecordPlace("s", 0, offset), "d")
    return Seen(0, 0, None, b"v", 0, ((SOURCE_HEADER, mark),))


def batch(start: int, end: int) -> Batch:
    return Batch(0, Spans.of({Log("s", 0, "i"): (start, end)}))


def times(leftovers: Leftovers, of: Batch, offset: int) -> int:
    """How often the mark of a source is found."""
    marks, count = leftovers.of(of), 0
    while marks.take(RecordPlace("s", 0, offset), "d"):
        count += 1
    return count


def test_marks_of_the_batch_behind_the_start_and_before_the_end_count(
    broker: RunningBroker,
) -> None:
    def found(held: Batch, offset: int) -> int:
        bus = Bus(broker.bootstrap)
        return times(Leftovers(bus, "app", STARTS, ENDS, is_settling=False), held, offset)

    assert found(batch(0, 9), 0) == 0  # before the start
    assert found(batch(0, 9), 3) == 2  # and one of another app
    assert found(batch(0, 3), 3) == 0  # of another batch
    assert found(Batch(0), 3) == 2  # nobody knows what the batch holds
    assert found(batch(0, 9), 4) == 0  # behind the end


def test_it_is_over_when_a_batch_has_passed_all_that_is_there(broker: RunningBroker) -> None:
    leftovers = Leftovers(Bus(broker.bootstrap), "app", STARTS, ENDS, is_settling=False)
    assert times(leftovers, batch(1, 2), 1) == 1
    leftovers.passed(batch(1, 2))
    assert not leftovers.is_over

    assert times(leftovers, batch(2, 4), 3) == 2
    leftovers.passed(batch(2, 4))

    assert leftovers.is_over
    assert not leftovers.of(batch(4, 5))


def test_a_group_that_a_properties_file_names_does_not_move(broker: RunningBroker) -> None:
    theirs = {"group.id": "theirs", "enable.auto.commit": "true"}

    bus = Bus(broker.bootstrap, theirs)
    assert times(Leftovers(bus, "app", STARTS, ENDS, is_settling=False), batch(0, 9), 3) == 2

    assert Admin(broker.bus).list_groups().groups == ()


def test_where_nothing_of_ours_is_it_is_over_at_once(broker: RunningBroker) -> None:
    leftovers = Leftovers(Bus(broker.bootstrap), "third", STARTS, ENDS, is_settling=False)

    assert not leftovers.of(batch(0, 9))
    assert leftovers.is_over


def test_what_a_dead_attempt_had_under_way_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that moves a second at each look, and a record that comes at the fifth."""
    consumer = _Late([[], [_End()], [], [], [_Record(3)], *[[] for _ in range(100)]])
    clock = SimpleNamespace(monotonic=lambda: consumer.looks)
    monkeypatch.setattr(topic_leftovers, "time", clock)
    monkeypatch.setattr(Leftovers, "_consumer", lambda self, partitions: consumer)
    leftovers = Leftovers(Bus(), "app", {(TOPIC, 0): 6}, {(TOPIC, 0): 6}, is_settling=True)

    assert times(leftovers, batch(3, 4), 3) == 1


class _Late:
    def __init__(self, answers: list[list[Any]]) -> None:
        self._answers = iter(answers)
        self.looks = 0

    def consume(self, count: int, timeout_s: float) -> list[Any]:
        self.looks += 1
        return next(self._answers)

    def close(self) -> None:
        pass


class _Record:
    def __init__(self, source_offset: int) -> None:
        self._source_offset = source_offset

    def topic(self) -> str:
        return TOPIC

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return 6

    def error(self) -> Any:
        return None

    def headers(self) -> Any:
        return list(made_from(self._source_offset).headers)


class _End(_Record):
    def __init__(self) -> None:
        super().__init__(0)

    def error(self) -> Any:
        return self

    def name(self) -> str:
        return "_PARTITION_EOF"
