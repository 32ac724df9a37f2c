"""What librdkafka complained of beside its answers: it explains a silence."""

from collections import deque
from typing import TYPE_CHECKING

from headrace.client.bus import Bus
from headrace.client.error_table import NamedError, is_passing, is_silence
from headrace.client.errors import BusError

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

_KEPT = 16  # the first explains; a broker that is away all night complains a thousand times


class Complaints:
    """`on_error` is for `error_cb` of any client of one bus; `label` is the bus in sentences."""

    def __init__(self, bus: Bus, label: str | None = None) -> None:
        self._label = label or bus.bootstrap
        self._told = deque[str](maxlen=_KEPT)
        self._refusal: str | None = None
        self.fatal: str | None = None

    def on_error(self, error: "KafkaError") -> None:
        """Keep it. A refusal at the log-on says more than the disconnections that follow."""
        if error.fatal() and self.fatal is None:
            self.fatal = error.str()
        if error.code() in (error._SSL, error._AUTHENTICATION):
            self._refusal = self._refusal or error.str()
        elif error.code() != error._ALL_BROKERS_DOWN and len(self._told) < _KEPT:
            self._told.append(error.str())

    @property
    def is_any(self) -> bool:
        """Whether librdkafka has complained of anything that explains a silence."""
        return bool(self._told or self._refusal)

    def take_refusal(self) -> BusError | None:
        """The refusal at the log-on, once."""
        refusal, self._refusal = self._refusal, None
        if refusal is None:
            return None
        return BusError(None, f"{self._label}: {refusal}", is_passing=False)

    def failure(self, reason: NamedError, timeout_s: float | None) -> BusError:
        """The error for what librdkafka said; who was refused at the log-on is told that."""
        if not is_silence(reason):
            return BusError(reason, is_passing=is_passing(reason))
        where = self._label
        if self._refusal is not None:
            return BusError(reason, f"{where}: {self._refusal}", is_passing=False)
        if self._told:
            return BusError(reason, f"{where}: {self._told[0]}", is_passing=True)
        within = "" if timeout_s is None else f" within {timeout_s:g} s"
        silence = f"{where} gave no answer{within}; is it a Kafka broker?"
        return BusError(reason, silence, is_passing=True, is_timeout=True)
