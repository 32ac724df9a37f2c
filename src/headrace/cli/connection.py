"""Which broker a command talks to, and how: the options all commands share, and the clients.

`@connects` adds the options to a command, which takes them as one `connection`, and sees to it
that every Kafka error ends as one sentence. confluent_kafka is imported when a command runs,
not when it is defined: `--help` and completion stay quick.
"""

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from headrace.cli.exit_codes import EXIT_FAILED
from headrace.cli.terminal import CommandError, UsageError, ending_well, tell
from headrace.client.addresses import DEFAULT_BOOTSTRAP, parse_addresses
from headrace.client.admin import DEFAULT_TIMEOUT_S, Admin
from headrace.client.bus import Bus
from headrace.client.errors import BusError, PropertyError
from headrace.client.making import make_client
from headrace.errors import HeadraceError
from headrace.properties import Assignment, read_properties

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Producer

VARIABLE = "HEADRACE_BOOTSTRAP"

_PANEL = "Connection"
_LOG_VERBOSE = "6"  # of syslog's levels: everything but debug
_Client = TypeVar("_Client")


class Connection:
    """The broker a command was told to use. `timeout_s` bounds every question put to it."""

    def __init__(
        self,
        bootstrap: str | None = None,
        *,
        client_config: Path | None = None,
        properties: Iterable[str] = (),
        timeout_s: float = DEFAULT_TIMEOUT_S,
        is_verbose: bool = False,
    ) -> None:
        self.timeout_s = timeout_s
        given = [*_read_file(client_config), *map(_parse_property, properties)]
        try:
            self._bus = Bus.of(given, bootstrap)
        except PropertyError as error:
            raise UsageError(str(error)) from error
        self.bootstrap = self._bus.bootstrap
        ours = {"client.id": "headrace", **({"log_level": _LOG_VERBOSE} if is_verbose else {})}
        self._admin = Admin(self._bus, timeout_s=timeout_s, config=ours)
        self._ours = {**ours, "error_cb": self._admin.on_error}
        self._is_reached = False

    @property
    def addresses(self) -> list[tuple[str, int]]:
        """Host and port of each bootstrap server."""
        try:
            return parse_addresses(self.bootstrap, "--bootstrap")
        except PropertyError as error:
            raise UsageError(str(error)) from error

    def config(self, more: Mapping[str, object] | None = None) -> dict[str, object]:
        """What any confluent_kafka client is made from; the user's properties win over `more`."""
        return self._bus.client_config({**self._ours, **(more or {})})

    def bus(self) -> Bus:
        """The same broker for a pipeline, of whose clients one is Java's."""
        try:
            self._bus.java_properties()
        except PropertyError as error:
            raise UsageError(str(error)) from error
        return self._bus

    def admin(self) -> Admin:
        """Asks and changes the bus; somebody listens where it connects to."""
        self.reach()
        try:
            self._admin.raw  # noqa: B018 - properties it does not take are told before anything else
        except PropertyError as error:
            raise UsageError(str(error)) from error
        return self._admin

    def producer(self, more: Mapping[str, object] | None = None) -> "Producer":
        """A producer with `more` configuration."""
        from confluent_kafka import Producer

        return self._client(Producer, more)

    def consumer(self, more: Mapping[str, object] | None = None) -> "Consumer":
        """A consumer with `more` configuration; librdkafka wants a `group.id` in it."""
        from confluent_kafka import Consumer

        return self._client(Consumer, more)

    def reach(self) -> None:
        """Raise CommandError unless somebody listens at one of the addresses."""
        if self._is_reached:
            return
        self.addresses  # noqa: B018 - a word that is no address is told with its option
        try:
            self._admin.reach()
        except BusError as error:
            raise CommandError(
                f"{error}; start one with 'headrace serve' or name another with --bootstrap"
            ) from error
        self._is_reached = True

    def sentence(self, error: "BusError | KafkaError") -> str:
        """What an error of the bus means to whoever typed the command."""
        told = error if isinstance(error, BusError) else self._admin.failure(error)
        return f"{told} Give it longer with --timeout" if told.is_timeout else str(told)

    def _client(self, make: Callable[[Any], _Client], more: Mapping[str, object] | None) -> _Client:
        self.reach()
        try:
            return make_client(self._bus, make, {**self._ours, **(more or {})})
        except PropertyError as error:
            raise UsageError(str(error)) from error


def tell_each(
    connection: Connection,
    outcomes: Mapping[str, BusError | None],
    on_done: Callable[[str], None],
) -> None:
    """Call `on_done` with each name that worked; tell of the others, then fail."""
    for name, error in outcomes.items():
        if error is None:
            on_done(name)
        else:
            tell(f"{name}: {connection.sentence(error)}")
    if any(outcomes.values()):
        raise typer.Exit(EXIT_FAILED)


def _connection(
    bootstrap: Annotated[
        str | None,
        typer.Option(
            "--bootstrap",
            metavar="HOST:PORT[,…]",
            envvar=VARIABLE,
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
        from confluent_kafka import KafkaException

        shared = {name: arguments.pop(name) for name in _OPTIONS}
        with ending_well():
            connection = _connection(**shared)
            try:
                function(connection=connection, **arguments)
            except PropertyError as error:
                raise UsageError(str(error)) from error
            except BusError as error:
                raise CommandError(connection.sentence(error)) from error
            except KafkaException as error:
                raise CommandError(connection.sentence(error.args[0])) from error

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
    except HeadraceError as error:
        raise UsageError(str(error)) from error


def _parse_property(text: str) -> Assignment:
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise UsageError(f"-X {text}: write NAME=VALUE")
    return Assignment(name.strip(), value, f"-X {name}")
