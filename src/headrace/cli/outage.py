"""A broker that went away, told once; librdkafka goes on trying by itself."""

from typing import Any

from headrace.cli.connection import Connection
from headrace.cli.endings import tell


class Outage:
    """Tells once that no broker answers, and again only after one has."""

    def __init__(self, connection: Connection) -> None:
        self._bootstrap = connection.bootstrap
        # The connection keeps each complaint, to explain an error with.
        self._keep: Any = connection.config()["error_cb"]
        self.is_on = False

    def on_error(self, error: Any) -> None:
        """For `error_cb`."""
        self._keep(error)
        if error.name() == "_ALL_BROKERS_DOWN" and not self.is_on:
            self.is_on = True
            tell(f"no broker answers at {self._bootstrap}; trying on")

    def over(self) -> None:
        """A broker has answered."""
        if self.is_on:
            self.is_on = False
            tell(f"{self._bootstrap} answers again")
