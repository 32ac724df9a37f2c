import io
import json

import pytest
from rich.console import Console

from bench.report import Results, make_table, number, spread, to_json
from bench.stage import Sample
from bench.workloads import Row

RATE = Row(key="rate", title="a rate", unit="msg/s")
DELAY = Row(key="delay", title="a delay", unit="µs", is_higher_better=False)


@pytest.fixture
def results():
    results = Results()
    for kafka, headrace in ((100, 300), (120, 200), (80, 100)):
        results.add("kafka", [Sample("rate", kafka, 4.0), Sample("delay", kafka)])
        results.add("headrace", [Sample("rate", headrace, 1.0), Sample("delay", headrace)])
    return results


def test_a_summary_has_the_median_and_every_sample(results):
    summary = results.summary(RATE, "kafka")

    assert summary.median == 100
    assert summary.samples == (100, 120, 80)
    assert summary.cpu_per_million == 4.0


def test_the_ratio_is_headrace_over_kafka_whichever_way_is_better(results):
    assert results.ratio(RATE) == 2
    assert results.ratio(DELAY) == 2


def test_the_advantage_is_over_one_only_when_headrace_is_better(results):
    assert results.advantage(RATE) == 2
    assert results.advantage(DELAY) == 0.5


def test_a_row_of_one_broker_has_no_ratio():
    results = Results()
    results.add("kafka", [Sample("rate", 100)])

    assert results.ratio(RATE) is None
    assert results.advantage(RATE) is None
    assert results.summary(RATE, "headrace") is None


def test_rows_without_a_sample_are_left_out(results):
    absent = Row(key="absent", title="not run", unit="s")

    assert results.rows_measured([DELAY, absent, RATE]) == [DELAY, RATE]


def test_cpu_is_absent_where_it_was_not_measured(results):
    assert results.summary(DELAY, "kafka").cpu_per_million is None


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1_412_345, "1.41M"),
        (999_900, "1.00M"),
        (352_499, "352k"),
        (14_230, "14.2k"),
        (999.4, "999"),
        (562.3, "562"),
        (12.34, "12.3"),
        (0.2149, "0.21"),
        (0.0734, "0.073"),
        (0, "0.000"),
    ],
)
def test_numbers_show_three_digits(value, text):
    assert number(value) == text


def test_a_range_is_shown_when_there_is_one(results):
    assert spread(results.summary(RATE, "kafka")) == "100 (80.0–120)"
    assert spread(None) == "–"


def test_one_sample_has_no_range():
    results = Results()
    results.add("kafka", [Sample("rate", 5.0)])

    assert spread(results.summary(RATE, "kafka")) == "5.00"


def test_the_table_shows_medians_ranges_advantage_and_cpu(results):
    console = Console(width=200, file=io.StringIO())
    console.print(make_table(results, [RATE, DELAY]))
    lines = console.file.getvalue().splitlines()

    (rate,) = [line for line in lines if "a rate" in line]
    (delay,) = [line for line in lines if "a delay" in line]
    assert [cell.strip() for cell in rate.split("│")[1:-1]] == [
        "a rate", "msg/s", "100 (80.0–120)", "200 (100–300)", "2.00", "4.00", "1.00",
    ]  # fmt: skip
    assert "µs ↓" in delay
    assert "0.50" in delay


def test_the_json_keeps_every_sample(results):
    report = json.loads(json.dumps(to_json(results, [RATE, DELAY], {"rounds": 3})))

    assert report["rounds"] == 3
    rate, delay = report["rows"]
    assert (rate["ratio"], rate["advantage"]) == (2, 2)
    assert (delay["ratio"], delay["advantage"]) == (2, 0.5)
    assert rate["brokers"]["headrace"] == {
        "median": 200,
        "min": 100,
        "max": 300,
        "samples": [300, 200, 100],
        "cpu_seconds_per_million_messages": 1.0,
        "cpu_samples": [1.0, 1.0, 1.0],
    }
