"""How a command ends when somebody ends it: as a process, because that is where it shows."""

import os
import signal
import socket
import subprocess
import sys

import pytest
import typer

from headrace.cli.endings import CommandError, UsageError, ending
from headrace.client.errors import BusError, PropertyError, UnreachableError
from headrace.errors import ConfigError, HeadraceError
from headrace.mirror.errors import MirrorRefusedError
from headrace.pipelines.errors import PipelineDefinitionError, SourceError
from headrace.properties import Assignment

# Ctrl-C comes when a module of ours is looked for.
INTERRUPTED_IMPORT = """
import signal, sys

class Finder:
    def find_spec(name, path, target=None):
        if name == "{module}":
            signal.raise_signal(signal.SIGINT)

from headrace.cli import main
sys.meta_path.insert(0, Finder)
main()
"""


def environment(bootstrap: str) -> dict[str, str]:
    """Output is buffered, as it is for a user's pipe."""
    inherited = {name: text for name, text in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return {**inherited, "HEADRACE_BOOTSTRAP": bootstrap}


def start(bootstrap: str, *words: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "headrace", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(bootstrap),
    )


def test_watching_shows_it_again_and_an_interrupt_ends_it_with_130(
    bootstrap: str, group: str
) -> None:
    words = ("groups", "describe", group, "--watch", "--every", "0.1", "--json")
    with start(bootstrap, *words) as process:
        assert process.stdout is not None
        assert group in process.stdout.readline()
        assert group in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate()

    assert (process.returncode, stderr) == (130, "")


def test_a_closed_pipe_ends_a_command_quietly(bootstrap: str, group: str) -> None:
    words = ("groups", "describe", group, "--watch", "--every", "0.1")
    with start(bootstrap, *words) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        stderr = process.stderr.read()

    assert (process.returncode, stderr) == (0, "")


def test_a_pipe_that_was_never_read_is_quiet_too(bootstrap: str) -> None:
    with start(bootstrap, "cluster") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        stderr = process.stderr.read()

    assert (process.returncode, stderr) == (0, "")


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM)]
)
@pytest.mark.parametrize("words", [("consume", "t", "--follow"), ("cluster",)])
def test_a_signal_ends_who_waits_for_a_broker_that_says_nothing(
    words: tuple[str, ...], number: signal.Signals, code: int
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        bootstrap = f"127.0.0.1:{silent.getsockname()[1]}"
        process = start(bootstrap, *words, "--timeout", "600")
        try:
            connection, _ = silent.accept()
            while not connection.recv(1):  # it only looked whether somebody listens
                connection.close()
                connection, _ = silent.accept()
            process.send_signal(number)  # now it waits for an answer
            _, stderr = process.communicate(timeout=120)
            connection.close()
        finally:
            process.kill()
            process.communicate()

    assert (process.returncode, stderr) == (code, "")


@pytest.mark.parametrize(
    ("module", "word"), [("headrace.cli.app", "cluster"), ("headrace.cli.serve.command", "serve")]
)
def test_an_interrupt_before_the_command_runs_is_130_and_silent(module: str, word: str) -> None:
    program = INTERRUPTED_IMPORT.format(module=module)

    answer = subprocess.run(
        [sys.executable, "-c", program, word], capture_output=True, text=True, check=False
    )

    assert (answer.returncode, answer.stderr) == (130, "")


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (CommandError("it broke; mend it"), 1, "it broke; mend it"),
        (UsageError("it broke; mend it"), 2, "it broke; mend it"),
        (PropertyError(Assignment("acks", "x", "-X acks"), "write 1"), 2, "-X acks: write 1"),
        (ConfigError("a", "b", "write c"), 2, "a=b: write c"),
        (PipelineDefinitionError("no such pipeline"), 2, "no such pipeline"),
        (MirrorRefusedError("it would go round"), 2, "it would go round"),
        (SourceError("no such topic"), 1, "no such topic"),
        (BusError(None, "not allowed", is_passing=False), 1, "not allowed"),
        (
            BusError(None, "no answer.", is_passing=True, is_timeout=True),
            *(1, "no answer. Give it longer with --timeout"),
        ),
        (
            UnreachableError("b:1"),
            1,
            "no broker answers at b:1; start one with 'headrace serve' or name another with "
            "--bootstrap",
        ),
    ],
)
def test_an_error_is_one_sentence_and_its_exit_code(
    error: HeadraceError, code: int, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit) as caught, ending():
        raise error

    assert caught.value.exit_code == code
    assert capsys.readouterr().err == f"headrace: {sentence}\n"


def test_an_interrupt_is_130_and_silent(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as caught, ending():
        raise KeyboardInterrupt

    assert caught.value.exit_code == 130
    assert capsys.readouterr().err == ""


def test_a_command_that_failed_says_no_more_where_its_pipe_was_closed(
    bootstrap: str, topic: str
) -> None:
    with start(bootstrap, "topics", "describe", topic, "not-there") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        stderr = process.stderr.read()

    assert "Exception ignored" not in stderr
    assert len(stderr.splitlines()) == 1
    assert process.returncode == 1


@pytest.mark.parametrize("closed", [">&-", "<&-", ">&- <&-"])
def test_a_stream_that_was_closed_before_the_start_is_none_to_a_command(
    bootstrap: str, closed: str
) -> None:
    answer = subprocess.run(
        ["sh", "-c", f"exec {sys.executable} -m headrace topics list {closed}"],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        check=False,
        env=environment(bootstrap),
    )

    assert (answer.returncode, answer.stderr) == (0, "")


def test_a_disk_that_is_full_is_one_sentence(bootstrap: str, group: str) -> None:
    with open("/dev/full", "w") as full:
        answer = subprocess.run(
            [sys.executable, "-m", "headrace", "groups", "list"],
            stderr=subprocess.PIPE,
            stdout=full,
            text=True,
            check=False,
            env=environment(bootstrap),
        )

    assert answer.returncode == 1
    assert answer.stderr == "headrace: cannot write: No space left on device; make room\n"
