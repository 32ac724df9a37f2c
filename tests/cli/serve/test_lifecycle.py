"""`headrace serve` as a process, seen from outside."""

import contextlib
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.cli.serve.options import DEFAULT_HTTP_PORT
from headrace.testing import BrokerNotReadyError, BrokerProcess, broker_process


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    with broker_process(tmp_path / "data", http_port=0) as process:
        yield process


def get(broker: BrokerProcess, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://{broker.http}{path}", timeout=120) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def refusal(data_dir: Path, **options: int) -> str:
    """Start a broker that must not start; return what it said."""
    with broker_process(data_dir, wait=False, **options) as broker:
        code = broker.process.wait(120)
        assert code in (1, 2)
        return f"{code}: {broker.stderr_text()}"


def test_the_ready_line_names_address_data_and_http(broker: BrokerProcess) -> None:
    assert broker.ready_line == (
        f"headrace ready on 127.0.0.1:{broker.port} (data {broker.data_dir}, http {broker.http})"
    )
    socket.create_connection((broker.host, broker.port), timeout=120).close()


def test_a_running_broker_is_healthy_ready_and_measured(broker: BrokerProcess) -> None:
    assert get(broker, "/healthz") == (200, "ok\n")
    assert get(broker, "/readyz") == (200, "ok\n")
    status, text = get(broker, "/metrics")
    assert status == 200
    assert "headrace_connections_open 0\n" in text


def test_readiness_is_lost_with_the_data_directory(broker: BrokerProcess) -> None:
    broker.data_dir.rename(broker.data_dir.with_name("moved"))

    status, reason = get(broker, "/readyz")

    assert status == 503
    assert str(broker.data_dir) in reason


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_cleanly(broker: BrokerProcess, number: signal.Signals) -> None:
    broker.process.send_signal(number)

    assert broker.process.wait(120) == 0
    assert '"level": "error"' not in broker.stderr_text()


def test_only_the_ready_line_goes_to_stdout(broker: BrokerProcess) -> None:
    assert broker.process.stdout is not None
    broker.process.send_signal(signal.SIGTERM)

    assert broker.process.stdout.read() == b""


def test_a_second_broker_on_the_directory_is_refused(broker: BrokerProcess) -> None:
    said = refusal(broker.data_dir)

    assert said.startswith("1: headrace: data directory ")
    assert "choose another --data-dir" in said
    assert said.count("\n") == 1


def test_a_busy_port_is_refused(broker: BrokerProcess, tmp_path: Path) -> None:
    said = refusal(tmp_path / "other", port=broker.port)

    assert said.startswith("2: headrace: ")
    assert "in use by another program" in said
    assert "--port" in said


def test_a_busy_http_port_is_refused_when_it_was_asked_for(
    broker: BrokerProcess, tmp_path: Path
) -> None:
    said = refusal(tmp_path / "other", http_port=int(broker.http.rpartition(":")[2]))

    assert "in use by another program; choose another with --http-port" in said


def test_an_http_port_that_is_none_is_refused(tmp_path: Path) -> None:
    told = refusal(tmp_path / "data", http_port=99_999)

    assert told.startswith("2: ")
    assert "headrace.http.port=99999: a port is at most 65535" in told


def test_a_busy_default_http_port_is_done_without(tmp_path: Path) -> None:
    with socket.socket() as taken:
        with contextlib.suppress(OSError):  # somebody else has it, which is as good
            taken.bind(("127.0.0.1", DEFAULT_HTTP_PORT))
            taken.listen()
        broker = BrokerProcess(tmp_path / "data", ["--port", "0"], tmp_path / "stderr.log")
        try:
            broker.wait_ready()
            assert broker.ready_line.endswith(", http off)")
            assert "choose a port with --http-port" in broker.stderr_text()
        finally:
            broker.kill()


def test_the_second_signal_ends_it_without_draining(broker: BrokerProcess) -> None:
    # Both are pending when it goes on, so that no drain can come between them.
    for number in (signal.SIGSTOP, signal.SIGTERM, signal.SIGINT, signal.SIGCONT):
        broker.process.send_signal(number)

    assert broker.process.wait(120) == 1
    assert "second signal" in broker.stderr_text()


def test_a_data_directory_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    said = refusal(tmp_path / "file" / "data")

    assert said.startswith("1: headrace: cannot use ")
    assert said.count("\n") == 1


def test_a_broker_that_does_not_start_says_why(tmp_path: Path) -> None:
    with (
        pytest.raises(BrokerNotReadyError, match=r"no\.such\.setting"),
        broker_process(tmp_path, no_such_setting=1),
    ):
        pass


@pytest.mark.parametrize("arguments", [["--help"], ["serve", "--help"], ["log", "dump", "--help"]])
def test_help_is_there_without_a_broker(arguments: list[str]) -> None:
    answer = subprocess.run(
        [sys.executable, "-m", "headrace", *arguments], capture_output=True, text=True, timeout=180
    )

    assert answer.returncode == 0
    assert "Usage: headrace" in answer.stdout
