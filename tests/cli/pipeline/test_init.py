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
        f"test it: pytest {tmp_path}/new/test_hot.py",
        """feed it: echo '{"sensor": "oven", "celsius": 180}' | headrace produce readings""",
        f"look at it: headrace pipeline run {tmp_path}/new/hot.py --to console: "
        "--trigger available-now",
        f"run it: headrace pipeline run {tmp_path}/new/hot.py",
    ]


def test_what_init_advises_is_what_the_page_shows_and_its_test_runs(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs/pipelines/writing.md").read_text("utf-8")

    answer = CliRunner().invoke(app, ["pipeline", "init", "hot_sensors", "--dir", str(tmp_path)])

    advice = [line.partition("it: ")[2] for line in answer.stdout.splitlines() if "it: " in line]
    assert len(advice) == 4
    assert all(command.replace(f"{tmp_path}/", "") in page for command in advice)


def test_init_refuses_to_overwrite(tmp_path: Path) -> None:
    words = ["pipeline", "init", "hot", "--yaml", "--dir", str(tmp_path)]
    CliRunner().invoke(app, words)

    answer = CliRunner().invoke(app, words)

    assert answer.exit_code == 2
    assert "hot.yaml is there already" in answer.stderr
