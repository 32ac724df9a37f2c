"""One of the two buses of a mirror: its clients, and questions asked again while nobody answers.

Until the copy runs a question has `timeout_s`; then the endpoint `is_patient`, and only a stop ends
the wait: a broker that restarts ends no mirror.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from typing import Any, NamedTuple, TypeVar

from headrace.client.admin import DEFAULT_TIMEOUT_S, Admin
from headrace.client.bus import READ_COMMITTED, Bus
from headrace.client.complaints import Complaints
from headrace.client.error_table import ErrorKind, NamedError
from headrace.client.errors import BusError
from headrace.client.librdkafka import bus_errors, in_thread, make_consumer
from headrace.mirror.errors import MirrorError
from headrace.mirror.interface import MirrorListener
from headrace.model import TopicPartition
from headrace.patience import Patience, StoppedError

# A topic that was just made is not known to every broker yet. One that is not known for so long is
# not there, and no patience helps.
UNKNOWN_S = 30.0
_LOOK_S = 0.1  # how often something else is looked after while an answer is waited for
_ANSWER_S = 1.0  # for librdkafka's own answer to arrive after its time is over
_LAST_S = 0.5  # for an answer when a stop was asked for: a silent broker holds nobody up
_FIXED: Mapping[str, object] = {
    "group.id": "headrace-mirror",
    "auto.offset.reset": "error",
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
    "allow.auto.create.topics": False,
}
_Answer = TypeVar("_Answer")


class EndpointError(BusError, MirrorError):
    """A bus of the two said no, or nothing; the sentence names it as the operator did."""


class MirroredTopic(NamedTuple):
    """One topic of an endpoint; `configs` are those set on it, not the broker's defaults.

    `topic_id` is empty where the broker knows none.
    """

    name: str
    topic_id: str
    partition_count: int
    replication_factor: int
    configs: dict[str, str]

    @property
    def partitions(self) -> list[TopicPartition]:
        return [TopicPartition(self.name, number) for number in range(self.partition_count)]


class Endpoint(Admin):
    """`label` is how the operator named it. Owned by one thread.

    Asked often, and over broker deaths: so of Admin's questions only those are used that go to no
    group coordinator (see there).
    """

    def __init__(
        self,
        label: str,
        bus: Bus,
        *,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        listener: MirrorListener,
        is_stopped: Callable[[], bool] = bool,
        config: Mapping[str, object] | None = None,
    ) -> None:
        """`config` is for all clients; the user's properties win over it."""
        super().__init__(bus, timeout_s=timeout_s, config=config)
        self._complaints = Complaints(bus, label)
        self.label = label
        self.is_patient = False
        self.is_stopped = is_stopped
        # Whether what is asked now is asked after a stop, and because of it.
        self.is_finishing = False
        # Called while an answer is waited for: what is under way meanwhile needs watching. It may
        # raise, which ends the question.
        self.meanwhile: Callable[[], object] = bool
        self._listener = listener
        self._is_out = self._is_refused = False

    # Clients

    def consumer(self, config: Mapping[str, object]) -> Any:
        """librdkafka's consumer, which commits nothing by itself and never guesses a position."""
        return make_consumer(self.bus, self.config, {**_FIXED, "error_cb": self.on_error, **config})

    @contextlib.contextmanager
    def errors(self) -> Iterator[None]:
        """Raise what librdkafka raises as EndpointError."""
        try:
            with bus_errors():
                yield
        except BusError as error:
            if error.reason is None or isinstance(error, EndpointError):
                raise
            raise self.failure(error.reason) from error

    # Questions

    def cluster_id(self) -> str:
        """The cluster's own name for itself, as it is told now."""
        if found := self.describe_cluster().cluster_id:
            return str(found)
        raise MirrorError(f"{self.label} tells no cluster id, so a loop could not be noticed")

    def topic_names(self) -> list[str]:
        """All topics but Kafka's own."""
        return sorted(name for name in self.metadata().topics if not name.startswith("__"))

    def topics(self, names: Iterable[str]) -> dict[str, MirroredTopic]:
        """Those of the topics that exist."""
        found = dict[str, MirroredTopic]()
        for name, each in self.describe_topics(sorted(names)).items():
            configs = {
                config.name: config.value
                for config in self.configs("topic", name)
                if config.is_set_on("topic") and config.value is not None
            }
            found[name] = MirroredTopic(
                name, each.topic_id, len(each.partitions), each.replication_factor, configs
            )
        return found

    def topic_ids(self, topics: Iterable[str]) -> dict[str, str]:
        """The ids of those of the topics that exist: one not to be seen is an error, not gone."""
        return {name: each.topic_id for name, each in self.describe_topics(topics).items()}

    def visible_ends(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Where each log ends for those who read committed messages only."""
        return self.end_offsets(partitions, READ_COMMITTED)

    # Waiting

    def ask(self, question: Callable[[], _Answer]) -> _Answer:
        """The answer, asked for again while that may help; raises EndpointError with the reason."""
        patience = self.patience(None if self.is_patient else self.timeout_s)
        unknown: Patience | None = None
        while True:
            try:
                answer = self.ask_once(question)
            except BusError as error:
                if error.kind is ErrorKind.UNKNOWN:
                    unknown = unknown or self.patience(UNKNOWN_S)
                    is_over = unknown.is_over
                else:
                    unknown = None
                    # Who is refused at the log-on while the copy runs may be let in again.
                    is_hopeful = self.is_patient and error.kind is ErrorKind.SILENT
                    is_over = not (error.is_passing or is_hopeful)
                if is_over or patience.is_over:
                    raise
                if error.kind is ErrorKind.SILENT:
                    self._tell_outage()
                patience.pause()
            else:
                self.answered()
                return answer

    def result(self, future: "Future[_Answer]") -> _Answer:
        """What a future comes to; StoppedError when a stop was asked for."""
        return self._wait(future, _LAST_S if self.is_finishing else self.timeout_s + _ANSWER_S)

    def call(self, blocking: Callable[[], _Answer]) -> _Answer:
        """What a call of librdkafka's comes to that keeps to a time of its own."""
        with self.errors():
            return self._wait(in_thread(blocking), None)

    def patience(self, timeout_s: float | None, **pauses: float) -> Patience:
        """A wait that a stop ends, and that looks after what is under way meanwhile."""
        return Patience(
            timeout_s,
            is_stopped=self.is_stopped,
            meanwhile=lambda: self.meanwhile(),
            **pauses,
        )

    def look(self) -> None:
        """Look after what is under way; raises StoppedError when a stop was asked for."""
        if self.is_stopped() and not self.is_finishing:
            raise StoppedError
        self.meanwhile()

    def _wait(self, future: "Future[_Answer]", timeout_s: float | None) -> _Answer:
        patience = Patience(timeout_s)
        while True:
            try:
                return future.result(min(_LOOK_S, patience.left_s))
            except TimeoutError:
                if future.done() or patience.is_over:
                    raise
                self.look()

    # What is told

    def reach(self) -> None:
        """librdkafka finds out by itself, and goes on trying."""

    def answered(self) -> None:
        """A broker has answered."""
        if self._is_out:
            self._listener.note(f"{self.label} answers again")
        self._is_out = self._is_refused = False

    def failure(self, reason: NamedError) -> BusError:
        """The error for what librdkafka said, with the operator's name of the bus."""
        found = super().failure(reason)
        is_named = found.kind is ErrorKind.SILENT
        return EndpointError(
            reason,
            str(found) if is_named else f"{self.label}: {found}",
            is_passing=found.is_passing,
            is_timeout=found.is_timeout,
        )

    def on_error(self, error: Any) -> None:
        """For `error_cb` of every client of this bus."""
        super().on_error(error)
        if error.code() == error._ALL_BROKERS_DOWN:
            self._tell_outage()
        elif error.code() in (error._SSL, error._AUTHENTICATION) and not self._is_refused:
            self._is_refused = True
            self._listener.note(f"{self.label}: {error.str()}")

    def _tell_outage(self) -> None:
        if not self._is_out and not self.is_finishing:
            self._is_out = True
            self._listener.note(f"{self.label} does not answer; trying on")
