import io
import json
import os
import pty
import sys

import pytest

from headrace.cli import terminal as output
from headrace.cli.endings import CommandError, UsageError
from headrace.cli.terminal import confirm, print_table


def test_a_table_elsewhere_than_on_a_terminal_is_aligned_text(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_table(("topic", "lag"), [("orders", 7), ("a" * 120, 1200)], numbers=["lag"])

    head, first, second = capsys.readouterr().out.splitlines()
    assert head == f"{'TOPIC':<120}   LAG"
    assert first == f"{'orders':<120}     7"
    assert second == "a" * 120 + "  1200"


def pretend_terminal(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """Make stdout something that says it is a terminal."""
    stream = io.StringIO()
    stream.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return stream


def test_a_table_on_a_terminal_has_lines_and_no_markup(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = pretend_terminal(monkeypatch)

    print_table(("topic",), [("[bold]x",)])

    assert "─" in terminal.getvalue()
    assert "[bold]x" in terminal.getvalue()


def test_no_color_means_plain_on_a_terminal_too(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = pretend_terminal(monkeypatch)
    monkeypatch.setenv("NO_COLOR", "1")

    print_table(("topic",), [("x",)])

    assert terminal.getvalue() == "TOPIC\nx\n"
    assert output.help_style() is None


@pytest.mark.parametrize("kind", ["dumb", "unknown", "DUMB"])
def test_a_terminal_that_cannot_draw_gets_plain_text(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = pretend_terminal(monkeypatch)
    monkeypatch.setenv("TERM", kind)

    print_table(("topic",), [("x",)])

    assert terminal.getvalue() == "TOPIC\nx\n"
    assert output.is_plain(terminal)


def test_json_is_one_line_and_keeps_letters(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_json({"topic": "größe", "text": "a\nb"})

    (line,) = capsys.readouterr().out.splitlines()
    assert "größe" in line
    assert json.loads(line) == {"topic": "größe", "text": "a\nb"}


def test_without_a_terminal_nothing_is_confirmed_but_by_yes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))

    confirm("Delete it?", is_yes=True)
    with pytest.raises(UsageError, match="--yes"):
        confirm("Delete it?", is_yes=False)


@pytest.mark.parametrize(("typed", "is_agreed"), [(b"y\n", True), (b"\n", False), (b"no\n", False)])
def test_on_a_terminal_it_is_asked(
    typed: bytes, is_agreed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    keyboard, screen = pty.openpty()
    with os.fdopen(screen) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        os.write(keyboard, typed)
        if is_agreed:
            confirm("Delete it?", is_yes=False)
        else:
            with pytest.raises(CommandError, match="nothing was changed"):
                confirm("Delete it?", is_yes=False)
    os.close(keyboard)
