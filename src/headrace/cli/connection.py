"""Which broker a command talks to, and how: the options all commands share, and the clients.

`@connects` adds the options to a command, which takes them as one `connection`, and sees to it
that every Kafka error ends as one sentence. confluent_kafka is imported when a command runs,
not when it is defined: `--help` and completion stay quick.
"""

import functools
import inspect
import re
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from headrace.cli import EXIT_FAILED
from headrace.cli.output import CommandError, UsageError, ending_well, tell
from headrace.client.addresses import DEFAULT_BOOTSTRAP, parse_addresses
from headrace.client.bus import Bus
from headrace.client.error_table import is_loading, is_silence, sentence_of
from headrace.client.errors import PropertyError
from headrace.errors import HeadraceError
from headrace.properties import Assignment, read_properties

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Producer

VARIABLE = "HEADRACE_BOOTSTRAP"
DEFAULT_TIMEOUT_S = 10.0

_PANEL = "Connection"
_LOG_VERBOSE = "6"  # of syslog's levels: everything but debug
_NAMED_IN_ERROR = re.compile(r'property:? "([^"]+)"')
_PAUSE_S = 0.1
_Result = TypeVar("_Result")
_Client = TypeVar("_Client")


def admin_types() -> Any:
    """The module confluent_kafka.admin: Any, since its annotations hide half of what it exports."""
    import confluent_kafka.admin

    return confluent_kafka.admin


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
        self._is_verbose = is_verbose
        self._complaints = list[str]()
        self._is_reached = False
        self._admin: Any = None

    @property
    def addresses(self) -> list[tuple[str, int]]:
        """Host and port of each bootstrap server."""
        try:
            return parse_addresses(self.bootstrap, "--bootstrap")
        except PropertyError as error:
            raise UsageError(str(error)) from error

    @property
    def is_plaintext(self) -> bool:
        """Whether a bare socket can talk to the broker: no TLS, no SASL."""
        return self._bus.is_plaintext

    def config(self, more: Mapping[str, object] | None = None) -> dict[str, object]:
        """What any confluent_kafka client is made from; the user's properties win over `more`."""
        ours = {"client.id": "headrace", "error_cb": self._on_error}
        log = {"log_level": _LOG_VERBOSE} if self._is_verbose else {}
        return self._bus.client_config({**ours, **log, **(more or {})})

    def bus(self) -> Bus:
        """The same broker for a pipeline, of whose clients one is Java's."""
        try:
            self._bus.java_properties()
        except PropertyError as error:
            raise UsageError(str(error)) from error
        return self._bus

    def admin(self) -> Any:
        """The AdminClient; somebody listens where it connects to."""
        if self._admin is None:
            self._admin = self._client(admin_types().AdminClient, None)
        return self._admin

    def producer(self, more: Mapping[str, object] | None = None) -> "Producer":
        """A producer with `more` configuration."""
        from confluent_kafka import Producer

        return self._client(Producer, more)

    def consumer(self, more: Mapping[str, object] | None = None) -> "Consumer":
        """A consumer with `more` configuration; librdkafka wants a `group.id` in it."""
        from confluent_kafka import Consumer

        return self._client(Consumer, more)

    def wait(self, future: "Future[_Result]") -> _Result:
        """The result of one of the AdminClient's futures; raises its KafkaException."""
        # librdkafka keeps to the time it was given; the second more is for its answer to arrive.
        return future.result(self.timeout_s + 1)

    def ask_coordinator(self, ask: "Callable[[], Future[_Result]]") -> _Result:
        """The result of a question about a group, asked again while its coordinator starts."""
        from confluent_kafka import KafkaException

        deadline = time.monotonic() + self.timeout_s
        while True:
            try:
                return self.wait(ask())
            except KafkaException as error:
                if not is_loading(error.args[0]) or time.monotonic() >= deadline:
                    raise
                time.sleep(_PAUSE_S)

    def wait_each(
        self, futures: "Mapping[str, Future[object]]", on_done: Callable[[str], None]
    ) -> None:
        """Call `on_done` with each name that worked; tell of the others, then fail."""
        from confluent_kafka import KafkaException

        is_failed = False
        for name, future in futures.items():
            try:
                self.wait(future)
            except KafkaException as error:
                tell(f"{name}: {self.sentence(error.args[0])}")
                is_failed = True
            else:
                on_done(name)
        if is_failed:
            raise typer.Exit(EXIT_FAILED)

    def reach(self) -> None:
        """Raise CommandError unless somebody listens at one of the addresses."""
        if self._is_reached:
            return
        addresses = self.addresses
        for address in addresses:
            try:
                socket.create_connection(address, self.timeout_s / len(addresses)).close()
            except OSError:
                continue
            self._is_reached = True
            return
        raise CommandError(
            f"no broker answers at {self.bootstrap}; "
            "start one with 'headrace serve' or name another with --bootstrap"
        )

    def sentence(self, error: "KafkaError") -> str:
        """What a Kafka error means to whoever typed the command."""
        if not is_silence(error):
            return sentence_of(error)
        if self._admin is not None:
            self._admin.poll(0)  # complaints are handed over by polling
        if self._complaints:
            return f"{self.bootstrap}: {self._complaints[0]}"
        return (
            f"{self.bootstrap} gave no answer within {self.timeout_s:g} s; "
            "is it a Kafka broker? Give it longer with --timeout"
        )

    def _client(self, make: Callable[[Any], _Client], more: Mapping[str, object] | None) -> _Client:
        from confluent_kafka import KafkaException

        self.reach()
        try:
            return make(self.config(more))
        except KafkaException as error:
            raise self._bad_property(str(error.args[0].str())) from error

    def _bad_property(self, message: str) -> UsageError:
        match = _NAMED_IN_ERROR.search(message)
        name = match[1] if match else ""
        if name not in self._bus.sources:
            return UsageError(message)
        if message.startswith("No such"):
            message = f"no client property is called {name}; librdkafka's names are used"
        return UsageError(f"{self._bus.sources[name]}: {message}")

    def _on_error(self, error: "KafkaError") -> None:
        # A refusal says more than the disconnections and "all brokers down" that follow it.
        if error.code() in (error._SSL, error._AUTHENTICATION):
            self._complaints.insert(0, error.str())
        elif error.code() != error._ALL_BROKERS_DOWN:
            self._complaints.append(error.str())


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
