"""What the broker says of topics and their offsets, asked by librdkafka before Spark starts.

Spark's connector waits for a dead broker without a word and names missing topics in Java; here
each of these is one sentence, within `timeout_s`.
"""

import difflib
import socket
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from headrace.errors import SourceError
from headrace.model import INTERNAL_TOPICS, known_topic_id
from headrace.pipelines.bus import READ_COMMITTED, READ_UNCOMMITTED, Bus

# Long enough for a cluster across an ocean to answer, short enough to wait for on a terminal.
DEFAULT_TIMEOUT_S = 10.0
_NEAR_NAMES = 3  # more than three suggestions are a list, not a hint
# While a partition gets a new leader, the old one and the next one say so at once.
_PAUSE_S = 0.2

Partition = tuple[str, int]  # topic and partition


class BusSilentError(SourceError):
    """The bus gave no answer, or a partition had no leader; a run may ask again."""

    is_retriable = True


@dataclass(frozen=True, slots=True)
class BusIdentity:
    """Which cluster answers, and which topics it has under some names."""

    cluster_id: str  # empty: it gives none
    topic_ids: Mapping[str, str]  # those that are there; empty where the broker gives none


class TopicPositions:
    """One connection to the bus for questions. Every question may raise SourceError."""

    def __init__(
        self, bus: Bus, timeout_s: float = DEFAULT_TIMEOUT_S, isolation_level: str | None = None
    ) -> None:
        """`isolation_level` decides where a topic with open transactions ends; None: the bus's."""
        self._bus = bus
        self._timeout_s = timeout_s
        self._isolation_level = isolation_level or bus.isolation_level
        if self._isolation_level not in (READ_COMMITTED, READ_UNCOMMITTED):
            raise SourceError(
                f"isolation.level={self._isolation_level}: write {READ_COMMITTED} or "
                f"{READ_UNCOMMITTED}"
            )
        self._complaints = list[str]()
        self._is_refused = False
        self._admin: Any = None

    def topics(self, *, has_internal: bool = False) -> dict[str, list[int]]:
        """All topics with their partitions; those the broker keeps for itself only if asked."""
        from confluent_kafka import KafkaException

        try:
            known = self._client().list_topics(timeout=self._timeout_s).topics
        except KafkaException as error:
            raise self._refusal(error) from error
        return {
            name: sorted(topic.partitions)
            for name, topic in known.items()
            if has_internal or name not in INTERNAL_TOPICS
        }

    def partitions(self, topics: Iterable[str]) -> list[Partition]:
        """The partitions of these topics; SourceError names a topic that is not there."""
        known = self.topics(has_internal=True)
        wanted = list(dict.fromkeys(topics))
        for name in wanted:
            if name not in known:
                raise SourceError(missing_topic(name, known, self._bus.bootstrap))
        return [(name, number) for name in wanted for number in known[name]]

    def identity(self, topics: Iterable[str]) -> BusIdentity:
        """Who answers; a topic that is not there has no id."""
        import confluent_kafka
        from confluent_kafka import KafkaException

        kafka: Any = confluent_kafka  # its annotations hide half of what it exports
        client, wanted = self._client(), list(topics)
        try:
            cluster_id = client.list_topics(timeout=self._timeout_s).cluster_id or ""
            asked = kafka.TopicCollection(wanted)
            answers = client.describe_topics(asked, request_timeout=self._timeout_s)
            found = {name: _topic_id(future) for name, future in answers.items()} if wanted else {}
        except KafkaException as error:
            raise self._refusal(error) from error
        return BusIdentity(
            cluster_id, {name: id_ for name, id_ in found.items() if id_ is not None}
        )

    def oldest(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """The first offset each partition still has."""
        return self._list_offsets(partitions, "earliest")

    def ends(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """The offset the next record of each partition gets."""
        return self._list_offsets(partitions, "latest")

    def at(self, time_ms: int, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """The first offset whose record is not older than `time_ms`; the end where all are."""
        found = self._list_offsets(partitions, "for_timestamp", max(time_ms, 0))
        beyond = [partition for partition, offset in found.items() if offset < 0]
        return found | self.ends(beyond)

    def has_times_in_order(self, topics: Iterable[str]) -> dict[str, bool]:
        """Whether the broker itself stamps a topic's records: then later offset, later time.

        Only true while nobody has changed `message.timestamp.type` since the oldest record.
        """
        from confluent_kafka import KafkaException

        names = list(topics)
        if not names:
            return {}
        resource = _admin_types().ConfigResource
        asked = [resource(resource.Type.TOPIC, name) for name in names]
        try:
            answers = self._client().describe_configs(asked, request_timeout=self._timeout_s)
            found = {each.name: future.result() for each, future in answers.items()}
        except KafkaException:
            return dict.fromkeys(names, False)  # not allowed to look: assume the worse
        return {
            name: entries["message.timestamp.type"].value == "LogAppendTime"
            for name, entries in found.items()
            if "message.timestamp.type" in entries
        }

    def _list_offsets(
        self, partitions: Iterable[Partition], spec: str, *arguments: int
    ) -> dict[Partition, int]:
        from confluent_kafka import KafkaException, TopicPartition

        wanted = list(partitions)
        if not wanted:
            return {}
        place = getattr(_admin_types().OffsetSpec, spec)(*arguments)
        asked = {TopicPartition(*partition): place for partition in wanted}
        isolation_level = getattr(_isolation_levels(), self._isolation_level.upper())
        deadline = time.monotonic() + self._timeout_s
        while True:
            try:
                futures = self._client().list_offsets(
                    asked, isolation_level=isolation_level, request_timeout=self._timeout_s
                )
                return {
                    (each.topic, each.partition): future.result().offset
                    for each, future in futures.items()
                }
            except KafkaException as error:
                if not has_no_leader(error.args[0]) or time.monotonic() > deadline:
                    raise self._refusal(error) from error
                time.sleep(_PAUSE_S)

    def _client(self) -> Any:
        if self._admin is None:
            from confluent_kafka import KafkaException

            self._reach()
            try:
                self._admin = _admin_types().AdminClient(
                    self._bus.client_config({"error_cb": self._on_error})
                )
            except KafkaException as error:
                raise SourceError(f"client properties: {error.args[0].str()}") from error
        return self._admin

    def _reach(self) -> None:
        addresses = self._bus.addresses
        for address in addresses:
            try:
                socket.create_connection(address, self._timeout_s / len(addresses)).close()
            except OSError:
                continue
            return
        raise SourceError(
            f"no broker answers at {self._bus.bootstrap}; "
            "start one with 'headrace serve' or name another bootstrap server"
        )

    def _refusal(self, error: Any) -> SourceError:
        kafka_error = error.args[0]
        if self._admin is not None:
            self._admin.poll(0)  # complaints are handed over by polling
        if has_no_leader(kafka_error):
            return BusSilentError(f"{self._bus.bootstrap}: {kafka_error.str()}")
        if not is_of_the_moment(kafka_error):
            return SourceError(f"{self._bus.bootstrap}: {kafka_error.str()}")
        if self._complaints:
            kind = SourceError if self._is_refused else BusSilentError
            return kind(f"{self._bus.bootstrap}: {self._complaints[0]}")
        return BusSilentError(
            f"{self._bus.bootstrap} gave no answer within {self._timeout_s:g} s; "
            "is it a Kafka broker?"
        )

    def _on_error(self, error: Any) -> None:
        # A refusal says more than the disconnections and "all brokers down" that follow it.
        if error.code() in (error._SSL, error._AUTHENTICATION):
            self._complaints.insert(0, error.str())
            self._is_refused = True
        elif error.code() != error._ALL_BROKERS_DOWN:
            self._complaints.append(error.str())


def _topic_id(future: Any) -> str | None:
    """The id in an answer, None if there is no such topic."""
    from confluent_kafka import KafkaException

    try:
        return known_topic_id(str(future.result().topic_id))
    except KafkaException as error:
        if error.args[0].name() in ("UNKNOWN_TOPIC_OR_PART", "UNKNOWN_TOPIC_ID"):
            return None
        raise


def has_no_leader(error: Any) -> bool:
    """Whether a node said that another one is to be asked: nodes come, go and change roles."""
    return error.name() in (
        "BROKER_NOT_AVAILABLE",
        "FENCED_LEADER_EPOCH",
        "LEADER_NOT_AVAILABLE",
        "NETWORK_EXCEPTION",
        "NOT_CONTROLLER",
        "NOT_LEADER_FOR_PARTITION",
        "OFFSET_NOT_AVAILABLE",
        "REPLICA_NOT_AVAILABLE",
        "REQUEST_TIMED_OUT",
        "UNKNOWN_LEADER_EPOCH",
    )


def is_of_the_moment(error: Any) -> bool:
    """Whether the same question may get an answer later: nobody answered, or nobody led."""
    silent = (error._TRANSPORT, error._TIMED_OUT, error._ALL_BROKERS_DOWN)
    return error.code() in silent or has_no_leader(error)


def missing_topic(name: str, known: Mapping[str, object] | Iterable[str], bootstrap: str) -> str:
    """The sentence for a topic that is not there, with those whose names are near."""
    near = difflib.get_close_matches(name, list(known), _NEAR_NAMES)
    hint = f"; did you mean {' or '.join(near)}?" if near else ";"
    return f"there is no topic {name} at {bootstrap}{hint} 'headrace topics create {name}' makes it"


def _isolation_levels() -> Any:
    import confluent_kafka

    return confluent_kafka.IsolationLevel


def _admin_types() -> Any:
    """The module confluent_kafka.admin: Any, since its annotations hide half of what it exports."""
    import confluent_kafka.admin

    return confluent_kafka.admin
