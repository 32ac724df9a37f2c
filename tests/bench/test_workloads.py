from bench.suite import FULL, QUICK
from bench.workloads import WORKLOADS


def test_names_and_rows_are_unique():
    names = [workload.name for workload in WORKLOADS]
    keys = [row.key for workload in WORKLOADS for row in workload.rows]

    assert len(set(names)) == len(names)
    assert len(set(keys)) == len(keys)


def test_a_full_run_is_long_enough_to_be_believed():
    assert FULL.rounds >= 5
    assert FULL.seconds >= 4
    assert FULL.backlog_bytes >= 10**9
    assert FULL.backlog_messages >= 50_000_000


def test_a_quick_run_fits_into_two_minutes():
    workloads = [workload for workload in WORKLOADS if workload.is_quick]
    measurements = sum(3 if workload.name == "fetch" else 1 for workload in workloads)
    a_pass = measurements * (QUICK.warm_up_seconds + 0.1)
    # Kafka takes 6 s to start; 0.5 s a measurement goes to making and deleting its topic.
    kafka = 6 + max(a_pass, QUICK.jit_warm_up_seconds) + measurements * (QUICK.seconds + 0.5)
    headrace = 1 + a_pass + measurements * (QUICK.seconds + 0.3)

    assert QUICK.seconds >= 1.5
    assert QUICK.rounds * (kafka + headrace) <= 120


def test_durable_and_page_cache_loads_are_both_there():
    assert {workload.is_durable for workload in WORKLOADS} == {True, False}
