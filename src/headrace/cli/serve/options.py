"""What the command line of `headrace serve` says, and the settings that come of it.

Nothing heavier than argparse is imported here at the top: the process must be ready in 0.3 s.
"""

import argparse
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from headrace.broker.listeners import Listener, client_listener
from headrace.cli.endings import EXIT_USAGE
from headrace.errors import ConfigError

if TYPE_CHECKING:
    from headrace.settings.broker_settings import BrokerSettings

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 9092
DEFAULT_HTTP_PORT = 9644
HELP = {
    "host": f"Address to listen on. Default {DEFAULT_HOST}.",
    "port": f"Port to listen on, 0 for any free one. Default {DEFAULT_PORT}.",
    "data_dir": "Directory for the logs. Default: the platform's place for user data.",
    "config": "File of settings, in Kafka's server.properties format.",
    "set": "One setting by Kafka's name, e.g. log.segment.bytes=1048576. May be repeated.",
    "http_port": (
        "Port for /healthz, /readyz and /metrics, 0 for any free one, -1 for none. "
        f"Default {DEFAULT_HTTP_PORT}, or none when that is taken."
    ),
    "log_format": "text or json. Default: text on a terminal, json elsewhere.",
    "log_level": "debug, info, warning or error. Default info.",
    "allow_public": "Listen on an address others can reach. There is no authentication yet.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions:
    """What the command line of `headrace serve` says; None: it does not say."""

    host: str | None = None
    port: int | None = None
    data_dir: Path | None = None
    config: Path | None = None
    set: list[str] = field(default_factory=list)
    http_port: int | None = None
    log_format: str | None = None
    log_level: str = "info"
    allow_public: bool = False


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        print(f"headrace serve: {message}; see headrace serve --help", file=sys.stderr)
        sys.exit(EXIT_USAGE)


def make_parser() -> argparse.ArgumentParser:
    """The fast twin of the typer command in `headrace.cli.app`; a test keeps them alike."""
    parser = _Parser(prog="headrace serve", add_help=False, allow_abbrev=False)
    parser.add_argument("--host", help=HELP["host"])
    parser.add_argument("--port", type=int, help=HELP["port"])
    parser.add_argument("--data-dir", type=Path, help=HELP["data_dir"])
    parser.add_argument("--config", type=Path, help=HELP["config"])
    parser.add_argument("--set", action="append", default=[], help=HELP["set"])
    parser.add_argument("--http-port", type=int, help=HELP["http_port"])
    parser.add_argument("--log-format", choices=("text", "json"), help=HELP["log_format"])
    parser.add_argument(
        "--log-level",
        choices=("debug", "info", "warning", "error"),
        default="info",
        help=HELP["log_level"],
    )
    parser.add_argument("--allow-public", action="store_true", help=HELP["allow_public"])
    return parser


def parse_arguments(arguments: list[str]) -> ServeOptions:
    """Read the command line after the word `serve`; ends the process when it is wrong."""
    return ServeOptions(**vars(make_parser().parse_args(arguments)))


def load_settings(options: ServeOptions) -> "BrokerSettings":
    """Kafka's settings; the order of precedence: default < file < environment < command line."""
    from headrace.settings.broker_settings import BrokerSettings

    if options.config is not None and not options.config.is_file():
        raise ConfigError("--config", options.config, "no such file")
    overrides: dict[str, str] = {}
    for assignment in options.set:
        name, sign, value = assignment.partition("=")
        if not sign or not name.strip():
            raise ConfigError("--set", assignment, "write it as --set NAME=VALUE")
        overrides[name.strip()] = value.strip()
    if options.data_dir is not None:
        overrides["log.dirs"] = str(options.data_dir)
    if options.http_port is not None:
        overrides["headrace.http.port"] = str(options.http_port)
    defaults = _defaults(options)
    settings = BrokerSettings.load(
        file=options.config, env=os.environ, overrides=overrides, defaults=defaults
    )
    listener = _listener_asked_for(options, settings)
    if listener is not None:
        overrides["listeners"] = str(listener)
        settings = BrokerSettings.load(
            file=options.config, env=os.environ, overrides=overrides, defaults=defaults
        )
    return settings


def check_exposure(options: ServeOptions, listener: Listener) -> None:
    """Refuse an address others can reach unless --allow-public was said."""
    if listener.is_public and not options.allow_public:
        raise ConfigError(
            "listeners",
            listener,
            "others can reach this address and there is no authentication yet; "
            "bind 127.0.0.1, or say --allow-public",
        )


def data_directory(settings: "BrokerSettings") -> Path:
    """The one directory of `log.dirs`, or of its old name when only that is set."""
    is_old_name = settings.is_set("log.dir") and not settings.is_set("log.dirs")
    name = "log.dir" if is_old_name else "log.dirs"
    value = settings[name]
    directories = value if isinstance(value, list) else str(value).split(",")
    if len(directories) != 1:
        text = ",".join(map(str, directories))
        raise ConfigError(name, text, "name one directory, headrace uses no more")
    return Path(directories[0].strip()).expanduser().absolute()


def _defaults(options: ServeOptions) -> dict[str, str]:
    host = DEFAULT_HOST if options.host is None else options.host
    port = DEFAULT_PORT if options.port is None else options.port
    defaults = {
        "listeners": str(Listener("PLAINTEXT", host, port)),
        "headrace.http.port": str(DEFAULT_HTTP_PORT),
    }
    if options.data_dir is None:
        from platformdirs import user_data_path

        defaults["log.dirs"] = str(user_data_path("headrace"))
    return defaults


def _listener_asked_for(options: ServeOptions, settings: "BrokerSettings") -> Listener | None:
    """--host and --port over the listener of the file; None when they change nothing."""
    configured = client_listener(settings)
    host = configured.host if options.host is None else options.host
    port = configured.port if options.port is None else options.port
    asked_for = configured._replace(host=host, port=port)
    return None if asked_for == configured else asked_for
