import socket
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from headrace.cli.app import app
from headrace.cli.connection import Connection
from headrace.cli.endings import UsageError
from headrace.cli.serve.options import ServeOptions, load_settings
from headrace.client.errors import PropertyError, UnreachableError
from headrace.kafka.process import free_ports


def test_nobody_listening_is_told_with_what_to_do() -> None:
    (port,) = free_ports(1)

    result = CliRunner().invoke(app, ["topics", "list", "--bootstrap", f"127.0.0.1:{port}"])

    assert result.exit_code == 1
    assert result.stderr == (
        f"headrace: no broker answers at 127.0.0.1:{port}; "
        "start one with 'headrace serve' or name another with --bootstrap\n"
    )


def test_somebody_who_does_not_answer_is_told_after_the_timeout() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        result = CliRunner().invoke(
            app, ["topics", "list", "--bootstrap", address, "--timeout", "0.5"]
        )

    assert result.exit_code == 1
    assert result.stderr.startswith(f"headrace: {address} gave no answer within 0.5 s; ")
    assert result.stderr.count("\n") == 1


def test_of_several_addresses_one_that_listens_will_do() -> None:
    (port,) = free_ports(1)
    with socket.create_server(("127.0.0.1", 0)) as server:
        Connection(f"127.0.0.1:{port},127.0.0.1:{server.getsockname()[1]}").reach()

    with pytest.raises(UnreachableError):
        Connection(f"127.0.0.1:{port}").reach()


def test_the_option_wins_over_the_file_and_the_file_over_the_default(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("bootstrap.servers=file:1\nacks=1\nlinger.ms=7")

    assert Connection().bootstrap == "127.0.0.1:9092"
    assert Connection(client_config=file).bootstrap == "file:1"
    assert Connection("option:1", client_config=file).bootstrap == "option:1"
    config = Connection(client_config=file, properties=["acks=all"]).config({"linger.ms": 0})
    assert (config["acks"], config["linger.ms"]) == ("all", "7")


def test_the_log_of_librdkafka_is_off_unless_verbose() -> None:
    assert Connection().config()["log_level"] == "0"
    assert Connection(is_verbose=True).config()["log_level"] != "0"


@pytest.mark.parametrize(
    "bootstrap", ["nowhere", ":9092", "host:", "host:port", "host:0", "host:65536", "a:1,"]
)
def test_an_address_that_cannot_be_is_refused(bootstrap: str) -> None:
    with pytest.raises(PropertyError, match=r"--bootstrap.*write HOST:PORT"):
        Connection(bootstrap).reach()


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("no.such.thing=1", "no client property is called no.such.thing"),
        ("security.protocol=smoke", "security.protocol"),
    ],
)
def test_a_property_librdkafka_refuses_is_named_with_its_line(
    tmp_path: Path, line: str, sentence: str, bootstrap: str
) -> None:
    file = tmp_path / "client.properties"
    file.write_text(f"# mine\n{line}\n")

    with pytest.raises(PropertyError) as caught:
        Connection(bootstrap, client_config=file).admin()

    assert str(caught.value).startswith(f"{file}:2: ")
    assert sentence in str(caught.value)


def test_a_property_without_a_value_is_refused() -> None:
    with pytest.raises(UsageError, match="-X acks: write NAME=VALUE"):
        Connection(properties=["acks"])


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        Connection(client_config=tmp_path / "absent")


def test_a_broker_without_tls_is_told_apart(bootstrap: str) -> None:
    words = ["topics", "list", "--bootstrap", bootstrap, "--timeout", "5"]

    result = CliRunner().invoke(app, [*words, "-X", "security.protocol=SSL"])

    assert result.exit_code == 1
    assert "SSL" in result.stderr
    assert result.stderr.count("\n") == 1


def test_the_variable_does_not_disturb_the_broker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADRACE_BOOTSTRAP", "127.0.0.1:1")

    load_settings(ServeOptions(data_dir=tmp_path))


def test_help_needs_no_client_library() -> None:
    code = (
        "import sys; from headrace.cli.app import app\n"
        "try: app(['topics', 'list', '--help'])\n"
        "except SystemExit: pass\n"
        "sys.exit('confluent_kafka' in sys.modules)"
    )

    assert subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL).returncode == 0
