import os
from contextlib import contextmanager
from dataclasses import replace

import pytest

from bench import suite
from bench.driver import MeasuredBroker
from bench.errors import BenchError
from bench.stage import Sample
from bench.suite import QUICK, run_rounds
from bench.workloads import Row, Workload


class FakeDriver:
    """A broker that is this very process and writes down when it runs."""

    def __init__(self, name, events, has_jit=False):
        self.name, self.events, self.has_jit = name, events, has_jit

    def prepare(self, directory):
        self.events.append(f"prepare {self.name}")

    @contextmanager
    def running(self, directory, *, is_durable):
        directory.mkdir()
        (directory / "data").write_bytes(b"data")
        self.events.append(f"start {self.name}{' durable' if is_durable else ''}")
        yield MeasuredBroker(
            name=self.name, port=1, pid=os.getpid(), ready_seconds=0.5, data_directory=directory
        )


def workload(name, events, is_durable=False):
    def run(stage):
        events.append(f"{'warm up' if stage.is_warm_up else 'measure'} {name}")
        return [Sample(name, 1.0)]

    rows = (Row(key=name, title=name, unit="x"),)
    return Workload(name=name, rows=rows, run=run, is_durable=is_durable)


@pytest.fixture(autouse=True)
def no_admin(monkeypatch):
    monkeypatch.setattr(suite, "admin_of", lambda port: None)


def test_brokers_take_turns_and_swap_their_order_each_round(tmp_path):
    events = []
    drivers = [FakeDriver("a", events), FakeDriver("b", events)]

    run_rounds(drivers, [workload("w", events)], replace(QUICK, rounds=2), tmp_path, str)

    assert [event for event in events if event.startswith("start")] == [
        "start a", "start b", "start b", "start a",
    ]  # fmt: skip


def test_every_workload_is_warmed_up_before_the_first_is_measured(tmp_path):
    events = []
    workloads = [workload("v", events), workload("w", events)]

    run_rounds([FakeDriver("a", events)], workloads, replace(QUICK, rounds=1), tmp_path, str)

    assert events[2:] == ["warm up v", "warm up w", "measure v", "measure w"]


def test_a_broker_with_a_jit_is_warmed_up_until_its_time_is_over(tmp_path, monkeypatch):
    events = []
    clock = iter([0, 4, 8, 12])  # one look a pass
    monkeypatch.setattr(suite.time, "monotonic", lambda: next(clock, 12))
    plan = replace(QUICK, rounds=1, jit_warm_up_seconds=10)

    run_rounds(
        [FakeDriver("a", events, has_jit=True)], [workload("w", events)], plan, tmp_path, str
    )

    assert events.count("warm up w") == 3


def test_durable_workloads_run_on_a_durable_broker(tmp_path):
    events = []
    workloads = [workload("v", events), workload("w", events, is_durable=True)]

    run_rounds([FakeDriver("a", events)], workloads, replace(QUICK, rounds=1), tmp_path, str)

    assert events.index("measure v") < events.index("start a durable") < events.index("measure w")


def test_readiness_and_memory_are_rows_too(tmp_path):
    results = run_rounds(
        [FakeDriver("a", [])], [workload("w", [])], replace(QUICK, rounds=2), tmp_path, str
    )

    ready = results.summary(Row(key="ready", title="", unit="s"), "a")
    memory = results.summary(Row(key="rss", title="", unit="MB"), "a")
    assert ready is not None
    assert ready.samples == (0.5, 0.5)
    assert memory is not None
    assert memory.median > 1


def test_nothing_is_left_on_disk_even_after_a_failure(tmp_path):
    def fail(stage):
        raise BenchError("no")

    failing = Workload(name="f", rows=(), run=fail)

    with pytest.raises(BenchError):
        run_rounds([FakeDriver("a", [])], [failing], QUICK, tmp_path, str)

    assert list(tmp_path.iterdir()) == []
