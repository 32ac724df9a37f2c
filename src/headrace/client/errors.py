"""What the client raises.

HeadraceError
├── ConfigError
│   ├── PropertyError    a client property, or an address, that cannot work
│   └── PositionError    what is no position in a partition
└── BusError             the bus said no, or nothing
    └── UnreachableError nobody listens where it is said to be
"""

from headrace.client.error_table import ErrorKind, NamedError, kind_of, sentence_of
from headrace.errors import ConfigError, HeadraceError
from headrace.properties import Assignment


class PropertyError(ConfigError):
    """A client property that cannot work; the sentence begins with where it was written."""

    def __init__(self, given: Assignment, wanted: str) -> None:
        HeadraceError.__init__(self, f"{given.source}: {wanted}")
        self.name, self.value, self.wanted = given.name, given.value, wanted


class PositionError(ConfigError):
    """What was written is no position; `wanted` says what is one."""

    def __init__(self, value: str, wanted: str) -> None:
        HeadraceError.__init__(self, f"{value!r} is no position; {wanted}")
        self.name, self.value, self.wanted = "position", value, wanted


class BusError(HeadraceError):
    """The bus said no, or nothing; its text is a sentence with the way out.

        try:
            Admin(bus).create_topic("bad name!")
        except BusError as error:
            print(error.name, error.is_passing, error)

    `reason` is librdkafka's KafkaError, None where nobody listens.

    `is_passing`: the same question may be answered in a moment; `is_timeout`: the time was over,
    and nothing is known beyond that.
    """

    def __init__(
        self,
        reason: NamedError | None,
        sentence: str | None = None,
        *,
        is_passing: bool,
        is_timeout: bool = False,
    ) -> None:
        super().__init__(sentence or (sentence_of(reason) if reason else "nobody answers"))
        self.reason = reason
        self.is_passing = is_passing
        self.is_timeout = is_timeout

    @property
    def name(self) -> str:
        """Kafka's name of the error, or librdkafka's; empty where nobody listens."""
        return self.reason.name() if self.reason else ""

    @property
    def kind(self) -> ErrorKind:
        return kind_of(self.reason) if self.reason else ErrorKind.SILENT


class UnreachableError(BusError):
    """Nobody listens at any of the bus's addresses."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(None, f"no broker answers at {bootstrap}", is_passing=True)
