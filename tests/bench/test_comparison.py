import io
import json

import pytest
from rich.console import Console

from bench.comparison import compare, make_table, to_json
from bench.report import Results
from bench.stage import Sample
from bench.workloads import Row

RATE = Row(key="rate", title="a rate", unit="msg/s")
DELAY = Row(key="delay", title="a delay", unit="µs", is_higher_better=False)


def compared(row, baseline, now):
    """One row of these pairs of value and CPU."""
    results = Results()
    for broker, samples in (("baseline", baseline), ("headrace", now)):
        results.add(broker, [Sample(row.key, *sample) for sample in samples])
    (one,) = compare(results, [row])
    return one


def rates(*values):
    return [(value,) for value in values]


def test_a_ratio_is_taken_round_by_round_since_the_machine_drifts():
    one = compared(RATE, rates(100, 200, 400), rates(90, 200, 480))

    assert one.ratio is not None
    assert one.ratio[:3] == (1.0, 0.9, 1.2)
    assert str(one.ratio) == "1.00 (0.90–1.20)"
    assert one.cpu_ratio is None


@pytest.mark.parametrize(
    ("row", "now", "verdict"),
    [
        (RATE, (90, 80, 94), "worse"),
        (RATE, (90, 80, 96), "no difference shown"),  # one round is within the margin
        (RATE, (110, 120, 106), "better"),
        (RATE, (110, 80, 106), "no difference shown"),
        (DELAY, (90, 80, 94), "better"),
        (DELAY, (110, 120, 106), "worse"),
        (RATE, (50, 50), "too few rounds"),
    ],
)
def test_a_verdict_is_what_all_rounds_agree_on(row, now, verdict):
    assert compared(row, rates(*[100] * len(now)), rates(*now)).verdict == verdict


@pytest.mark.parametrize(
    ("cpu", "verdict"),
    [
        ((1.1, 1.2, 1.3), "worse: more CPU"),
        ((0.9, 0.8, 0.7), "less CPU"),
        ((1.1, 1.0, 1.3), "no difference shown"),
    ],
)
def test_cpu_has_a_verdict_of_its_own(cpu, verdict):
    one = compared(RATE, [(100, 1.0)] * 3, [(100, each) for each in cpu])

    assert one.verdict == verdict


def test_faster_for_more_cpu_is_both():
    one = compared(RATE, [(100, 1.0)] * 3, [(150, 2.0)] * 3)

    assert one.verdict == "better, worse: more CPU"


def test_a_row_that_only_one_of_them_has_is_left_out():
    results = Results()
    results.add("headrace", [Sample("rate", 1)])

    assert compare(results, [RATE]) == []


def test_table_and_json_have_both_and_the_spread():
    one = compared(RATE, [(100, 2.0), (200, 2.0), (100, 4.0)], [(80, 2.0), (150, 3.0), (90, 2.0)])
    console = Console(width=250, file=io.StringIO())
    console.print(make_table([one]))
    (line,) = [line for line in console.file.getvalue().splitlines() if "a rate" in line]

    assert [cell.strip() for cell in line.split("│")[1:-1]] == [
        "a rate", "msg/s", "100 (100–200)", "90.0 (80.0–150)", "0.80 (0.75–0.90)",
        "2.00", "2.00", "1.00 (0.50–1.50)", "worse",
    ]  # fmt: skip
    report = json.loads(json.dumps(to_json([one], {"rounds": 3})))
    assert (report["rounds"], report["margin"]) == (3, 0.05)
    assert report["rows"][0]["baseline"]["samples"] == [100, 200, 100]
    assert report["rows"][0]["ratio"] == {
        "median": 0.8, "lowest": 0.75, "highest": 0.9, "rounds": 3,
    }  # fmt: skip
