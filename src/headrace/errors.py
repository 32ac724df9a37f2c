"""Base of all errors headrace raises, and those that several packages raise.

The others are in the `errors.py` of the package that raises them. Facts are attributes; the
message is built from them.
"""


class HeadraceError(Exception):
    """Base of all errors this package raises on purpose. One travels between processes whole."""

    def __reduce__(self) -> tuple[object, ...]:
        # Python would call the class with the sentence, and most are made from facts.
        return _again, (type(self), self.args), self.__dict__


def _again(kind: type[HeadraceError], args: tuple[object, ...]) -> HeadraceError:
    error = kind.__new__(kind)
    error.args = args
    return error


class ConfigError(HeadraceError):
    """A setting has a value that cannot work."""

    def __init__(self, name: str, value: object, wanted: str) -> None:
        super().__init__(f"{name}={value}: {wanted}")
        self.name, self.value, self.wanted = name, value, wanted


class InvalidConfigError(ConfigError):
    """A known setting has a value that Kafka refuses; `wanted` is Kafka's own sentence."""

    def __init__(self, name: str, value: object, wanted: str, *, source: str | None = None) -> None:
        HeadraceError.__init__(self, f"{source}: {wanted}" if source else wanted)
        self.name, self.value, self.wanted, self.source = name, value, wanted, source


class RequestError(HeadraceError):
    """A well-formed request for something that cannot be done."""


class EngineError(HeadraceError):
    """Apache Kafka on this machine cannot be fetched, started or asked."""
