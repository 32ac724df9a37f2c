import json

import pytest

from bench.pipelines.contests import Contest, Contestant, ContestResults
from bench.pipelines.metering import Pass
from bench.pipelines.plan import FULL, HEADRACE, KAFKA, targets_of
from bench.pipelines.plots import write_plots
from bench.pipelines.report import (
    Target,
    figures,
    make_tables,
    target_rows,
    to_json,
    to_markdown,
)


def a_pass(rate: float, cpu: float = 1.0, broker: float = 0.0) -> Pass:
    return Pass(1_000_000, 1_000_000 / rate, cpu, broker)


def never() -> Pass:
    raise AssertionError


@pytest.fixture
def results() -> ContestResults:
    results = ContestResults()
    for rate in (80_000, 100_000, 90_000):
        results.add("ours", a_pass(rate, cpu=2.5, broker=0.4))
        results.add("theirs", a_pass(rate * 2))
    return results


@pytest.fixture
def contest() -> Contest:
    return Contest(
        key="c",
        title="archive",
        contestants=(
            Contestant(key="ours", title="fed by us", run=never),
            Contestant(key="theirs", title="fed by them", run=never),
            Contestant(key="unmeasured", title="nobody", run=never),
        ),
    )


def test_figures_are_medians_with_ranges(results):
    rate, cpu, broker, database = figures(results.passes["ours"])

    assert rate == "90.0k (80.0k–100k)"
    assert cpu.startswith("2.50")
    assert (broker, database) == ("0.40", "–")


@pytest.mark.parametrize(("at_least", "verdict"), [(0.5, "met"), (0.51, "MISSED"), (None, "")])
def test_a_target_is_met_or_missed_by_the_ratio_of_medians(results, at_least, verdict):
    target = Target(title="share", subject="ours", reference="theirs", at_least=at_least)

    ((title, value, _, said),) = target_rows([target], results)

    assert (title, value, said) == ("share", "0.50", verdict)


def test_a_target_nobody_measured_is_left_out(results):
    assert target_rows([Target(title="x", subject="nobody")], results) == []
    assert target_rows([Target(title="x", subject="ours", reference="nobody")], results) == []


def test_the_report_says_the_same_in_every_form(results, contest):
    targets = [Target(title="share", subject="ours", reference="theirs", at_least=0.4)]

    page = to_markdown([contest], targets, results, ["a note"])
    report = json.loads(json.dumps(to_json([contest], targets, results, {"mode": "quick"})))

    assert len(make_tables([contest], targets, results)) == 2
    assert "| fed by us | 90.0k (80.0k–100k) |" in page
    assert "| share | 0.50 | ≥ 0.40 | met |" in page
    assert "nobody" not in page
    ours, theirs = report["contests"][0]["contestants"]
    assert (ours["rows_per_second"], theirs["rows_per_second"]) == pytest.approx((90e3, 180e3))
    assert len(ours["passes"]) == 3
    assert report["targets"][0]["value"] == pytest.approx(0.5)


def test_the_targets_of_issue_5_are_among_those_told():
    wanted = {
        (target.subject, target.reference): target.at_least
        for target in targets_of(FULL)
        if target.at_least is not None
    }

    assert wanted == {
        (f"archive-{HEADRACE}", f"archive-{KAFKA}"): 0.9,
        (f"archive-{HEADRACE}", "copy"): 0.7,
        (f"sqlite-{HEADRACE}", None): 50_000,
        (f"postgresql-{HEADRACE}", None): 50_000,
    }


def test_the_plots_are_pictures(results, contest, tmp_path):
    growth = [("archive", {1: "ours", 4: "theirs"}), ("table", {1: "unmeasured"})]

    paths = write_plots([contest], growth, results, None, tmp_path)

    assert [path.name for path in paths] == ["rates.png", "growth.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in paths)
