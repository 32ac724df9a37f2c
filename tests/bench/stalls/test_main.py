import json

import pytest

from bench.stalls import __main__ as command
from bench.stalls.loads import LOADS


def test_an_unknown_load_is_refused_with_the_known_ones(tmp_path, capsys) -> None:
    assert command.main(["--only", "nonsense", "--out", str(tmp_path)]) == 1
    assert "no load is called nonsense; there are quiet, times" in capsys.readouterr().err


def test_the_help_names_every_load(capsys) -> None:
    with pytest.raises(SystemExit):
        command.main(["--help"])

    said = capsys.readouterr().out
    assert all(load.name in said for load in LOADS)


def test_a_short_run_prints_the_table_and_leaves_only_its_results(tmp_path, capsys) -> None:
    arguments = ["--quick", "--engine", "headrace", "--only", "million", "--only", "create"]

    assert command.main([*arguments, "--scale", "0.01", "--out", str(tmp_path)]) == 0

    said = capsys.readouterr().out
    assert "| a Fetch of a million partitions, then ten in its session |" in said
    report = json.loads((tmp_path / "stalls.json").read_text())
    assert [row["load"] for row in report["rows"]] == ["million", "create"]
    assert report["failures"] == []
    assert report["rows"][1]["culprit"]["answers"] == {"NONE": 50}
    assert report["rows"][1]["peak_rss_bytes"] > 10_000_000
    assert [path.name for path in tmp_path.iterdir()] == ["stalls.json"]
