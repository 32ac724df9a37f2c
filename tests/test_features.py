"""The plugin that records what clients can do."""

import json

import pytest

TESTS = """
import pytest

@pytest.mark.feature("{client}", "reads, {codec}")
@pytest.mark.parametrize("codec", ["none", "zstd"])
@pytest.mark.parametrize("client", ["a", "b"])
def test_reads(client, codec):
    if client == "b":
        pytest.skip("no b here")
    assert codec == "none"

@pytest.mark.feature("a", "reads, none")
@pytest.mark.feature("a", "writes")
def test_writes():
    pass

@pytest.mark.feature("a", "writes")
@pytest.mark.parametrize("engine", ["kafka"])
def test_another_engine(engine):
    assert False

def test_nothing_marked():
    assert False
"""


def test_results_are_kept_by_client_and_feature(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(TESTS)

    ran = pytester.runpytest_inprocess(
        *("-p", "tests.features", "-p", "no:cacheprovider", "--feature-results", "results.json")
    )

    ran.assert_outcomes(passed=2, failed=1, skipped=2, deselected=2)
    assert json.loads((pytester.path / "results.json").read_text())["results"] == {
        "a": {
            "reads, none": {"outcome": "passed"},
            "reads, zstd": {"outcome": "failed"},
            "writes": {"outcome": "passed"},
        },
        "b": {
            "reads, none": {"outcome": "skipped", "reason": "no b here"},
            "reads, zstd": {"outcome": "skipped", "reason": "no b here"},
        },
    }


def test_several_workers_are_refused_since_none_sees_all_results(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(TESTS)

    ran = pytester.runpytest_inprocess(
        *("-p", "tests.features", "-p", "no:cacheprovider", "-n", "2"),
        *("--feature-results", "results.json"),
    )

    assert ran.ret == pytest.ExitCode.USAGE_ERROR
    ran.stderr.fnmatch_lines("*leave out -n*")
