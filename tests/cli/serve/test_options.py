from pathlib import Path

import pytest
import typer

from headrace.broker.listeners import client_listener
from headrace.cli.app import app
from headrace.cli.serve.command import run
from headrace.cli.serve.options import (
    HELP,
    ServeOptions,
    data_directory,
    load_settings,
    make_parser,
    parse_arguments,
)
from headrace.errors import ConfigError


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))


def address_of(*arguments: str) -> tuple[str, int]:
    listener = client_listener(load_settings(parse_arguments(list(arguments))))
    return listener.host, listener.port


def test_the_fast_parser_and_typer_know_the_same_options() -> None:
    command = typer.main.get_command(app)
    assert isinstance(command, typer.core.TyperGroup)
    described = {
        option.opts[0]: getattr(option, "help", None)
        for option in command.commands["serve"].params
        if option.name != "help"
    }

    parsed = {action.option_strings[0]: action.help for action in make_parser()._actions}

    assert parsed == described
    assert len(parsed) == len(HELP)


def test_the_default_address_is_kafkas_port_on_loopback() -> None:
    assert address_of() == ("127.0.0.1", 9092)


def test_host_and_port_may_be_given_alone() -> None:
    assert address_of("--port", "0") == ("127.0.0.1", 0)
    assert address_of("--host", "localhost") == ("localhost", 9092)


def test_the_command_line_wins_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("listeners=PLAINTEXT://localhost:1,CONTROLLER://localhost:2\n"
                    "controller.listener.names=CONTROLLER\n")  # fmt: skip

    assert address_of("--config", str(file)) == ("localhost", 1)
    assert address_of("--config", str(file), "--port", "7") == ("localhost", 7)


def test_the_environment_wins_over_the_file_and_set_over_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "server.properties"
    file.write_text("num.partitions=2\nnum.network.threads=2\nlog.retention.hours=2\n")
    monkeypatch.setenv("HEADRACE_NUM_PARTITIONS", "3")
    monkeypatch.setenv("HEADRACE_LOG_RETENTION_HOURS", "3")
    arguments = ["--config", str(file), "--set", "num.partitions=4"]

    settings = load_settings(parse_arguments(arguments))

    assert settings.int("num.partitions") == 4
    assert settings.int("log.retention.hours") == 3
    assert settings.int("num.network.threads") == 2


def test_without_a_choice_data_goes_to_the_platforms_place(tmp_path: Path) -> None:
    settings = load_settings(ServeOptions())

    assert data_directory(settings) == tmp_path / "share" / "headrace"


@pytest.mark.parametrize("name", ["log.dir", "log.dirs"])
def test_both_of_kafkas_names_choose_the_directory(tmp_path: Path, name: str) -> None:
    settings = load_settings(ServeOptions(set=[f"{name}={tmp_path}/data"]))

    assert data_directory(settings) == tmp_path / "data"


def test_two_directories_are_one_too_many() -> None:
    settings = load_settings(ServeOptions(set=["log.dirs=/a,/b"]))

    with pytest.raises(ConfigError, match="name one directory"):
        data_directory(settings)


def test_an_http_port_asked_for_is_told_from_the_default() -> None:
    by_default = load_settings(ServeOptions())
    asked_for = load_settings(ServeOptions(http_port=0))

    assert by_default.int("headrace.http.port") == 9644
    assert not by_default.is_set("headrace.http.port")
    assert asked_for.int("headrace.http.port") == 0
    assert asked_for.is_set("headrace.http.port")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (ServeOptions(set=["oops"]), "write it as --set NAME=VALUE"),
        (ServeOptions(set=["no.such.setting=1"]), "no.such.setting"),
        (ServeOptions(set=["num.partitions=many"]), "num.partitions"),
        (ServeOptions(config=Path("/nowhere/server.properties")), "no such file"),
        (ServeOptions(host="0.0.0.0", port=0), "--allow-public"),
        (ServeOptions(set=["listeners=SSL://127.0.0.1:0"]), "SSL"),
    ],
)
def test_a_wrong_configuration_is_one_sentence_and_exit_code_2(
    options: ServeOptions, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run(options)

    captured = capsys.readouterr()
    assert code == 2
    assert sentence in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""


def test_a_file_that_asks_for_security_does_not_start_a_broker_without(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "server.properties"
    file.write_text("listeners=PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0\n")

    code = run(parse_arguments(["--config", str(file), "--data-dir", str(tmp_path / "data")]))

    assert code == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert f"{file}:1: listeners=PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0" in error
    assert not (tmp_path / "data").exists()


def test_an_unknown_option_is_one_sentence_and_exit_code_2(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as exit_info:
        parse_arguments(["--prot", "1"])

    assert exit_info.value.code == 2
    assert "see headrace serve --help" in capsys.readouterr().err
