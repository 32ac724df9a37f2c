"""The plugin that shares the tests out among workers."""

from pathlib import Path

import pytest

TEST = """
import os
import pathlib

import pytest

pytestmark = pytest.mark.{marker}


@pytest.mark.parametrize("number", range(3))
def test_a(number):
    path = pathlib.Path({log!r}, f"{{pathlib.Path(__file__).stem}}-{{number}}")
    path.write_text(os.environ["PYTEST_XDIST_WORKER"])
"""


def test_what_needs_spark_and_what_shares_a_node_stay_together(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    markers = {"test_a": "x", "test_b": "x", "test_y": "spark", "test_z": "spark"}
    markers |= {"tests/bench/test_c": "x", "tests/bench/test_d": "x"}
    for name, marker in markers.items():
        path = pytester.path / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(TEST.format(marker=marker, log=str(tmp_path)))
    options = (
        "-p",
        "tests.side_by_side",
        "-p",
        "no:cacheprovider",
        "-n",
        "2",
        "--dist",
        "loadfile",
    )

    ran = pytester.runpytest_subprocess(*options, "-W", "ignore")

    ran.assert_outcomes(passed=18)
    workers = {path.name: path.read_text() for path in tmp_path.iterdir()}
    for files in ("a", "b", "yz", "cd"):
        together = {w for name, w in workers.items() if name[len("test_")] in files}
        assert len(together) == 1
