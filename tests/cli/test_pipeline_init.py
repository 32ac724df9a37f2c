from pathlib import Path

from typer.testing import CliRunner

from headrace.cli.app import app


def test_init_says_what_it_wrote_and_how_to_go_on(tmp_path: Path) -> None:
    words = ["pipeline", "init", "hot", "--dir", str(tmp_path / "new")]
    answer = CliRunner().invoke(app, words)

    assert answer.exit_code == 0, answer.stderr
    assert answer.stdout.splitlines() == [
        f"wrote {tmp_path}/new/hot.py",
        f"wrote {tmp_path}/new/test_hot.py",
        f"try it: pytest {tmp_path}/new/test_hot.py",
        f"run it: headrace pipeline run {tmp_path}/new/hot.py --to console:",
    ]


def test_init_refuses_to_overwrite(tmp_path: Path) -> None:
    words = ["pipeline", "init", "hot", "--yaml", "--dir", str(tmp_path)]
    CliRunner().invoke(app, words)

    answer = CliRunner().invoke(app, words)

    assert answer.exit_code == 2
    assert "hot.yaml is there already" in answer.stderr
