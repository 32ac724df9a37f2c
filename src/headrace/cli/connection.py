"""Which broker a command talks to, and how: the options all commands share, and the clients.

`@connects` adds the options to a command, which takes them as one `connection`. The client library
is imported when a command runs, not when it is defined: `--help` and completion stay quick.
"""

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from headrace.cli.endings import CommandError, UsageError
from headrace.client.addresses import DEFAULT_BOOTSTRAP, parse_addresses
from headrace.client.admin import DEFAULT_TIMEOUT_S, Admin
from headrace.client.bus import BOOTSTRAP_VARIABLE, Bus
from headrace.client.librdkafka import Partition, make_consumer, make_producer
from headrace.properties import Assignment, read_properties

_PANEL = "Connection"
_LOG_VERBOSE = "6"  # of syslog's levels: everything but debug


class Connection:
    """The broker a command was told to use. `timeout_s` bounds every question put to it."""

    def __init__(
        self,
        bootstrap: str | None = None,
        *,
        option: str = "--bootstrap",
        client_config: Path | None = None,
        properties: Iterable[str] = (),
        timeout_s: float = DEFAULT_TIMEOUT_S,
        is_verbose: bool = False,
    ) -> None:
        self.timeout_s = timeout_s
        self._option = option
        given = [*_read_file(client_config), *map(_parse_property, properties)]
        self.bus = Bus.of(given, bootstrap)
        ours = {"client.id": "headrace", **({"log_level": _LOG_VERBOSE} if is_verbose else {})}
        self._admin = Admin(self.bus, timeout_s=timeout_s, config=ours)
        self._ours = {**ours, "error_cb": self._admin.on_error}
        self._is_reached = False

    @property
    def bootstrap(self) -> str:
        """The addresses, as they were written."""
        return self.bus.bootstrap

    def config(self, more: Mapping[str, object] | None = None) -> dict[str, object]:
        """What any client of librdkafka is made from; the user's properties win over `more`."""
        return self.bus.client_config({**self._ours, **(more or {})})

    def bus_for_java(self) -> Bus:
        """The bus, of whose properties none is unknown to Java's clients, such as Spark's."""
        self.bus.java_properties()
        return self.bus

    def admin(self) -> Admin:
        """Asks and changes the bus; somebody listens where it connects to."""
        self.reach()
        self._admin.raw  # noqa: B018 - properties it does not take are told before anything else
        return self._admin

    def producer(self, more: Mapping[str, object] | None = None) -> Any:
        """librdkafka's producer with `more` configuration."""
        self.reach()
        return make_producer(self.bus, {**self._ours, **(more or {})})

    def consumer(
        self, fixed: Mapping[str, object], more: Mapping[str, object] | None = None
    ) -> Any:
        """librdkafka's consumer with `more` configuration, over which the user's properties win.

        `fixed` wins over these: a properties file for another purpose names another group. It has
        to name one.
        """
        self.reach()
        return make_consumer(self.bus, {**self._ours, **(more or {})}, fixed)

    def reach(self) -> None:
        """Raise UnreachableError unless somebody listens at one of the addresses."""
        if not self._is_reached:
            parse_addresses(self.bootstrap, self._option)  # what is none is told with its option
            self._admin.reach()
            self._is_reached = True

    def partitions(
        self, topics: Iterable[str], numbers: Iterable[int] | None = None
    ) -> list[Partition]:
        """The partitions of the topics, all or those with these numbers; all of them are there."""
        wanted = list(dict.fromkeys(topics))
        known = self.admin().describe_topics(wanted)
        found = list[Partition]()
        for topic in wanted:
            if topic not in known or not (there := known[topic].partitions):
                raise unknown_topic(topic)
            for number in there if numbers is None else dict.fromkeys(numbers):
                if number not in there:
                    raise CommandError(
                        f"topic {topic} has no partition {number}, only 0 to {len(there) - 1}"
                    )
                found.append((topic, number))
        return found


def unknown_topic(topic: str) -> CommandError:
    """The error for a topic that is not there, or is no longer."""
    return CommandError(f"there is no topic {topic}; 'headrace topics list' names those there are")


def _connection(
    bootstrap: Annotated[
        str | None,
        typer.Option(
            "--bootstrap",
            metavar="HOST:PORT[,…]",
            envvar=BOOTSTRAP_VARIABLE,
            show_default=DEFAULT_BOOTSTRAP,
            help="The broker, or some of the cluster's.",
            rich_help_panel=_PANEL,
        ),
    ] = None,
    client_config: Annotated[
        Path | None,
        typer.Option(
            "--client-config",
            metavar="FILE",
            help="Kafka client properties: TLS, SASL, …",
            rich_help_panel=_PANEL,
        ),
    ] = None,
    client_properties: Annotated[
        list[str] | None,
        typer.Option(
            "-X",
            metavar="NAME=VALUE",
            help="One client property; may be repeated.",
            rich_help_panel=_PANEL,
        ),
    ] = None,
    timeout: Annotated[
        float,
        typer.Option(
            "--timeout",
            metavar="SECONDS",
            min=0.1,
            help="How long to wait for an answer.",
            rich_help_panel=_PANEL,
        ),
    ] = DEFAULT_TIMEOUT_S,
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose", help="Show the log of librdkafka on stderr.", rich_help_panel=_PANEL
        ),
    ] = False,
) -> Connection:
    return Connection(
        bootstrap,
        client_config=client_config,
        properties=client_properties or (),
        timeout_s=timeout,
        is_verbose=verbose,
    )


_OPTIONS = inspect.signature(_connection).parameters
SHARED_OPTIONS = ("--bootstrap", "--client-config", "-X", "--timeout", "--verbose")


def connects(function: Callable[..., None]) -> Callable[..., None]:
    """Make a function with a `connection` a command that has the shared options instead."""

    @functools.wraps(function)
    def command(**arguments: Any) -> None:
        connection = _connection(**{name: arguments.pop(name) for name in _OPTIONS})
        function(connection=connection, **arguments)

    own = inspect.signature(function, eval_str=True).parameters
    mine = [each for name, each in own.items() if name != "connection"]
    parameters = [
        each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in [*mine, *_OPTIONS.values()]
    ]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    return command


def _read_file(path: Path | None) -> list[Assignment]:
    if path is None:
        return []
    try:
        return read_properties(path)
    except OSError as error:
        raise UsageError(f"--client-config {path}: {error.strerror}") from error


def _parse_property(text: str) -> Assignment:
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise UsageError(f"-X {text}: write NAME=VALUE")
    return Assignment(name.strip(), value, f"-X {name}")
