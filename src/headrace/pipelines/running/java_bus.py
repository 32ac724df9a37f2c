"""Questions that a run asks of the bus while it runs, by the Kafka client in Spark's own Java.

librdkafka's admin client may end the whole process when a broker dies under it, which a run that
lasts for weeks will meet. Java's does not, and it logs on with the connector's own properties.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headrace.client.bus import Bus
from headrace.model import known_topic_id
from headrace.pipelines.topic_positions import BusIdentity, BusSilentError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Long enough for a node to be replaced by another, as a batch itself would wait.
_TIMEOUT_MS = 30_000


@dataclass(frozen=True, slots=True)
class GroupUsage:
    """Who uses a consumer group."""

    members: int
    notes: frozenset[str]  # the metadata of its committed offsets


class JavaBus:
    """One connection, opened by the first question. Every question may raise BusSilentError."""

    def __init__(self, spark: "SparkSession", bus: Bus) -> None:
        self._java: Any = spark._jvm
        self._bus = bus
        self._admin: Any = None

    def identity(self, topics: Iterable[str]) -> BusIdentity:
        """Who answers; a topic that is not there has no id."""
        wanted = list(topics)
        cluster_id = self._result(self._client().describeCluster().clusterId())
        answers = self._client().describeTopics(self._list(wanted)).topicNameValues()
        found = dict[str, str]()
        for name in wanted:
            topic = self._result(answers.get(name), absent="UnknownTopicOrPartitionException")
            if topic is not None:
                found[name] = known_topic_id(topic.topicId().toString())
        return BusIdentity(cluster_id or "", found)

    def group(self, name: str) -> GroupUsage:
        """Who uses a group; a group that is not there is used by nobody."""
        absent = "GroupIdNotFoundException"
        groups = self._client().describeConsumerGroups(self._list([name])).describedGroups()
        group = self._result(groups.get(name), absent=absent)
        places = self._client().listConsumerGroupOffsets(name).partitionsToOffsetAndMetadata()
        offsets = self._result(places, absent=absent) or {}
        # confluent-kafka sends the zero that ends a text of C as well.
        notes = (each.metadata().rstrip("\0") for each in dict(offsets).values() if each)
        return GroupUsage(0 if group is None else group.members().size(), frozenset(notes))

    def close(self) -> None:
        """Let go of the connection; its Java may be gone already."""
        if self._admin is not None:
            from py4j.protocol import Py4JError

            admin, self._admin = self._admin, None
            try:
                admin.close(self._java.java.time.Duration.ofSeconds(1))
            except (Py4JError, OSError):
                return

    def _client(self) -> Any:
        if self._admin is None:
            properties = self._java.java.util.Properties()
            timeouts = {"default.api.timeout.ms": _TIMEOUT_MS, "request.timeout.ms": _TIMEOUT_MS}
            own = self._bus.java_properties()
            given = {"bootstrap.servers": self._bus.bootstrap, **timeouts, **own}
            for name, value in given.items():
                properties.put(name, str(value))
            self._admin = self._java.org.apache.kafka.clients.admin.AdminClient.create(properties)
        return self._admin

    def _list(self, names: list[str]) -> Any:
        listed = self._java.java.util.ArrayList()
        for name in names:
            listed.add(name)
        return listed

    def _result(self, future: Any, *, absent: str | None = None) -> Any:
        """What a future of Kafka's gives; None for the error that means there is no such thing."""
        from py4j.protocol import Py4JJavaError

        unit = self._java.java.util.concurrent.TimeUnit.MILLISECONDS
        try:
            return future.get(2 * _TIMEOUT_MS, unit)
        except Py4JJavaError as error:
            cause = error.java_exception.getCause() or error.java_exception
            if cause.getClass().getSimpleName() == absent:
                return None
            raise BusSilentError(
                f"{self._bus.bootstrap}: {cause.getMessage() or cause.getClass().getSimpleName()}"
            ) from error
