import io

import pytest
from rich.console import Console

from demo.plot import write_plot
from demo.view import view
from demo.watch import Progress, Watcher


@pytest.fixture
def watcher() -> Watcher:
    watcher = Watcher(
        "127.0.0.1:1", "readings", groups=("archive", "table"), dead_letter_topic="dead"
    )
    watcher.looks = [
        Progress(0.0, 0, {"archive": 0, "table": 0}, 0),
        Progress(10.0, 1_000, {"archive": 600, "table": 0}, 7),
    ]
    return watcher


@pytest.mark.parametrize("is_terminal", [False, True])
def test_rates_lag_and_dead_letters_are_shown(watcher, is_terminal):
    out = io.StringIO()
    console = Console(file=out, force_terminal=is_terminal, width=120)

    with view(console, watcher) as show:
        show("the feed runs")

    text = out.getvalue()
    for part in ("1,000", "600", "400", "7", "the feed runs"):
        assert part in text
    assert ("\x1b[" in text) is is_terminal


def test_elsewhere_than_on_a_terminal_lines_come_now_and_then(watcher):
    out = io.StringIO()

    with view(Console(file=out), watcher) as show:
        for _ in range(50):
            show("the feed runs")

    assert out.getvalue().count("\n") == 1


def test_a_terminal_that_cannot_draw_gets_lines(watcher):
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=120, _environ={"TERM": "dumb"})

    with view(console, watcher) as show:
        show("the feed runs")
        shown_meanwhile = out.getvalue()

    assert "the feed runs" in shown_meanwhile


def test_the_plot_is_a_picture(watcher, tmp_path):
    path = tmp_path / "new" / "rates.png"

    write_plot(watcher.looks, watcher.groups, path)

    assert path.read_bytes().startswith(b"\x89PNG")
