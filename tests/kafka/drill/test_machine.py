import os

import psutil
import pytest

from headrace.kafka.drill.machine import CpuReading, CpuSample, CpuWatch, others_share, read_cpu

# Two cores: in ten seconds 20 s of CPU time.
SAMPLES = [CpuSample(0, 100, 50, 0), CpuSample(10, 120, 62, 4), CpuSample(20, 140, 82, 5)]


@pytest.mark.parametrize(
    ("start_s", "end_s", "share"),
    [
        (0, 10, 0.4),
        (10, 20, 0.95),
        (3, 7, 0.4),  # what encloses the time
        (3, 17, (32 - 5) / 40),
        (-5, 99, (32 - 5) / 40),
    ],
)
def test_others_took_what_was_used_and_not_ours(start_s: float, end_s: float, share: float) -> None:
    assert others_share(SAMPLES, start_s, end_s) == pytest.approx(share)


def test_where_nobody_looked_nothing_is_known() -> None:
    assert others_share([], 0, 10) is None
    assert others_share(SAMPLES[:1], 0, 10) is None


def test_a_node_that_is_started_again_has_used_all_its_time_since() -> None:
    readings = iter(
        [
            CpuReading(100, 50, {"drill": 7.0, "old node": 30.0}),
            CpuReading(110, 58, {"drill": 8.0}),  # killed
            CpuReading(120, 64, {"drill": 9.0, "new node": 2.0}),
        ]
    )
    times = iter([0.0, 5.0, 10.0])
    watch = CpuWatch(lambda: next(readings), lambda: next(times))

    for _ in range(3):
        watch.look()

    assert watch.others_share(0, 10) == pytest.approx((14 - 4) / 20)


def test_our_own_work_is_not_others() -> None:
    before = read_cpu([None, 2**22 + 1])
    (key,) = before.ours_s
    while read_cpu([]).ours_s[key] - before.ours_s[key] < 0.2:
        pass
    after = read_cpu([])

    assert key == (os.getpid(), psutil.Process().create_time())
    assert after.capacity_s > before.capacity_s
    assert after.used_s - before.used_s >= 0.1
