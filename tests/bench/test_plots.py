import pytest

from bench.plots import can_plot, write_plots
from bench.report import Results
from bench.stage import Sample
from bench.workloads import Row

ROWS = [Row(key="rate", title="a rate", unit="msg/s"), Row(key="other", title="not run", unit="s")]

pytestmark = pytest.mark.skipif(not can_plot(), reason="matplotlib is optional")


def test_two_brokers_make_two_pictures(tmp_path):
    results = Results()
    results.add("kafka", [Sample("rate", 100, 4.0)])
    results.add("headrace", [Sample("rate", 50, 1.0)])

    paths = write_plots(results, ROWS, tmp_path)

    assert [path.name for path in paths] == ["times-kafka.png", "cpu.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in paths)


def test_one_broker_has_nothing_to_be_compared_with(tmp_path):
    results = Results()
    results.add("kafka", [Sample("rate", 100, 4.0)])

    assert [path.name for path in write_plots(results, ROWS, tmp_path)] == ["cpu.png"]
