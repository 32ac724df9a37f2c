"""Questions to a bus and changes of it, by librdkafka's admin client.

Every failure is a BusError with its sentence, answers are plain values. What may pass is asked
again until `timeout_s` is over: a partition between two leaders, a coordinator that starts.
"""

import contextlib
import functools
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeVar

from headrace.client.bus import READ_UNCOMMITTED, Bus
from headrace.client.complaints import Complaints
from headrace.client.descriptions import (
    DEAD,
    ClusterDescription,
    Config,
    GroupDescription,
    GroupList,
    Metadata,
    TopicDescription,
    cluster_of,
    group_of,
    groups_of,
    metadata_of,
    topic_of,
)
from headrace.client.error_table import (
    ErrorKind,
    NamedError,
    is_leaderless,
    is_passing,
    is_silence,
    is_unknown,
)
from headrace.client.errors import BusError, UnreachableError
from headrace.client.librdkafka import Partition, in_thread
from headrace.client.making import make_client
from headrace.patience import Patience

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

    from headrace.client.wire import WireConnection

# Long enough for a cluster across an ocean to answer, short enough to wait for on a terminal.
DEFAULT_TIMEOUT_S = 10.0
BROKERS_DEFAULT = -1  # of partitions and replicas: as many as the broker gives a topic
_OFFSET_NOT_AVAILABLE = 78  # Kafka's code
_BEYOND_END = -1  # the offset of a time that no message has reached
_ANSWER_S = 1.0  # for librdkafka's own answer to arrive after its time is over
_Answer = TypeVar("_Answer")
# A caller gets back what it has asked with.
_Partition = TypeVar("_Partition", bound=Partition)

_HIDDEN = "TOPIC_AUTHORIZATION_FAILED"  # what a broker says of a topic that is not to be seen


class Admin:
    """Asks and changes a bus: topics, configs, offsets, groups. Owned by one thread.

        admin = Admin(bus)
        admin.ensure_topic("orders", partitions=4, configs={"retention.ms": "86400000"})
        assert admin.end_offsets([("orders", 0)])["orders", 0] >= 0

    Every failure is a BusError. There is one connection, opened by the first question.

    Every question goes through `ask`, and its futures through `result`: a subclass that waits in
    another way replaces these. librdkafka's admin client can end the process when a broker dies
    under a question that goes to a group's coordinator (a group's offsets, its description);
    those after topics, offsets, configs, the cluster and the list of groups do not go there.
    """

    def __init__(
        self,
        bus: Bus,
        *,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        config: Mapping[str, object] | None = None,
    ) -> None:
        """`timeout_s` bounds each question; `config` is librdkafka's, the user's properties win."""
        self.bus = bus
        self.timeout_s = timeout_s
        self.config = dict(config or {})
        self._complaints = Complaints(bus)
        self._raw: Any = None

    def with_timeout(self, timeout_s: float) -> "Admin":
        """The same, by a connection of its own and with other patience."""
        return Admin(self.bus, timeout_s=timeout_s, config=self.config)

    # Topics

    def metadata(self) -> Metadata:
        """The brokers that are alive, and all topics."""
        ask = functools.partial(self.raw.list_topics, timeout=self.timeout_s)
        return metadata_of(self.ask(lambda: self.result(in_thread(ask))))

    def describe_cluster(self) -> ClusterDescription:
        """The brokers with their racks, and who controls them."""
        return cluster_of(
            self.ask(lambda: self.result(self.raw.describe_cluster(request_timeout=self.timeout_s)))
        )

    def cluster_id(self) -> str:
        """The cluster's id; empty where it gives none."""
        return self.metadata().cluster_id

    def topic_ids(self, topics: Iterable[str]) -> dict[str, str]:
        """The id of each of these topics that is there and to be seen; empty where none is told."""
        found = self._described(topics, is_hidden_absent=True)
        return {name: each.topic_id for name, each in found.items()}

    def describe_topics(self, topics: Iterable[str]) -> dict[str, TopicDescription]:
        """Those of the topics that are there. BusError for one that is not to be seen."""
        return self._described(topics, is_hidden_absent=False)

    def create_topic(
        self,
        name: str,
        partitions: int = BROKERS_DEFAULT,
        replication_factor: int = BROKERS_DEFAULT,
        configs: Mapping[str, str] | None = None,
    ) -> bool:
        """Make a topic, and return True. BusError TOPIC_ALREADY_EXISTS where there is one."""
        from confluent_kafka import KafkaException
        from confluent_kafka.cimpl import NewTopic

        topic = NewTopic(name, partitions, replication_factor, config=dict(configs or {}))
        is_unsure = False  # whether an earlier try, whose answer was lost, may have worked

        def ask() -> None:
            nonlocal is_unsure
            future = self.raw.create_topics([topic], request_timeout=self.timeout_s)[name]
            try:
                self.result(future)
            except KafkaException as error:
                reason = error.args[0]
                if not (is_unsure and reason.name() == "TOPIC_ALREADY_EXISTS"):
                    is_unsure = is_passing(reason)
                    raise

        self.ask(ask)
        return True

    def ensure_topic(
        self,
        name: str,
        partitions: int = BROKERS_DEFAULT,
        replication_factor: int = BROKERS_DEFAULT,
        configs: Mapping[str, str] | None = None,
    ) -> bool:
        """Make a topic unless it is there; return whether it was made."""
        try:
            return self.create_topic(name, partitions, replication_factor, configs)
        except BusError as error:
            if error.name != "TOPIC_ALREADY_EXISTS":
                raise
            return False

    def grow_topic(self, name: str, partitions: int) -> None:
        """Give a topic more partitions."""
        from confluent_kafka.cimpl import NewPartitions

        more = NewPartitions(name, partitions)
        self.ask(
            lambda: self.result(
                self.raw.create_partitions([more], request_timeout=self.timeout_s)[name]
            )
        )

    def delete_topics(self, names: Iterable[str]) -> dict[str, BusError | None]:
        """Delete topics; of each, why that did not work, or None."""
        return self._each(self.raw.delete_topics(list(names), request_timeout=self.timeout_s))

    def delete_records(self, before: Mapping[Partition, int]) -> None:
        """Let each log start at this offset."""
        from confluent_kafka import TopicPartition

        places = [TopicPartition(*partition, offset) for partition, offset in before.items()]

        def ask() -> None:
            futures = self.raw.delete_records(places, request_timeout=self.timeout_s)
            for future in futures.values():
                self.result(future)

        self.ask(ask)

    # Configs

    def configs(self, kind: str, name: str) -> list[Config]:
        """All configs of one "topic", "broker" or "group", by name."""
        kafka = _types()
        resource = kafka.ConfigResource(kafka.ResourceType[kind.upper()], name)
        entries = self.ask(
            lambda: self.result(
                self.raw.describe_configs([resource], request_timeout=self.timeout_s)[resource]
            )
        )
        return sorted(
            Config(
                entry.name,
                entry.value,
                kafka.ConfigSource(entry.source).name,
                bool(entry.is_read_only),
                bool(entry.is_sensitive),
            )
            for entry in entries.values()
        )

    def alter_configs(self, kind: str, name: str, wanted: Mapping[str, str | None]) -> None:
        """Give configs new values; None returns one to its default. The others stay as they are."""
        kafka = _types()
        operations = kafka.AlterConfigOpType
        entries = [
            kafka.ConfigEntry(
                config,
                value,
                incremental_operation=operations.DELETE if value is None else operations.SET,
            )
            for config, value in wanted.items()
        ]
        resource = kafka.ConfigResource(
            kafka.ResourceType[kind.upper()], name, incremental_configs=entries
        )

        def ask() -> None:
            futures = self.raw.incremental_alter_configs([resource], request_timeout=self.timeout_s)
            self.result(futures[resource])

        self.ask(ask)

    # Offsets

    # With `is_partial`, a partition that nobody leads now has no offset; without, it is waited for.
    # For who reads only what was committed, the first open transaction is the end.

    def oldest_offsets(
        self, partitions: Iterable[_Partition], *, is_partial: bool = False
    ) -> dict[_Partition, int]:
        """The first offset each partition still has."""
        spec = _types().OffsetSpec.earliest()
        return self._offsets(partitions, spec, READ_UNCOMMITTED, is_partial=is_partial)

    def end_offsets(
        self,
        partitions: Iterable[_Partition],
        isolation_level: str = READ_UNCOMMITTED,
        *,
        is_partial: bool = False,
    ) -> dict[_Partition, int]:
        """The offset the next message gets."""
        spec = _types().OffsetSpec.latest()
        return self._offsets(partitions, spec, isolation_level, is_partial=is_partial)

    def offsets_at(
        self,
        time_ms: int,
        partitions: Iterable[_Partition],
        isolation_level: str = READ_UNCOMMITTED,
        *,
        is_partial: bool = False,
    ) -> dict[_Partition, int]:
        """The first offset whose message is not older; the end where all are older."""
        spec = _types().OffsetSpec.for_timestamp(max(time_ms, 0))
        found = self._offsets(
            partitions, spec, isolation_level, is_partial=is_partial, least=_BEYOND_END
        )
        beyond = [partition for partition, offset in found.items() if offset < 0]
        return found | self.end_offsets(beyond, isolation_level, is_partial=is_partial)

    # What librdkafka has no call for

    def api_versions(self) -> dict[int, tuple[int, int]] | None:
        """Oldest and newest version of each API, by its key; None when no broker says so."""
        from headrace.client.broker_questions import api_versions

        return next(self._of_brokers(api_versions), None)

    def log_sizes(self) -> dict[Partition, int]:
        """Bytes of each partition on the disk, where its broker says so.

        Of its copies the largest counts, the others are behind.
        """
        from headrace.client.broker_questions import log_sizes

        sizes = dict[Partition, int]()
        for found in self._of_brokers(log_sizes):
            for partition, size_bytes in found.items():
                sizes[partition] = max(size_bytes, sizes.get(partition, 0))
        return sizes

    # Groups

    def list_groups(self) -> GroupList:
        """All groups, of those brokers that answer."""
        return groups_of(
            self.ask(
                lambda: self.result(self.raw.list_consumer_groups(request_timeout=self.timeout_s))
            ),
            self.failure,
        )

    def describe_group(self, group: str) -> GroupDescription:
        """A group and its members."""
        return group_of(
            self.ask(
                lambda: self.result(
                    self.raw.describe_consumer_groups([group], request_timeout=self.timeout_s)[
                        group
                    ]
                )
            )
        )

    def group_offsets(self, group: str) -> dict[Partition, int]:
        """The offsets a group has committed.

        A node that has just become the coordinator, or no longer is, ends the whole process by its
        answer: librdkafka 2.16 tells a consumer of it that an admin client has not. The description
        gets the same answer unharmed, and is asked for until it gets a better one.
        """
        from confluent_kafka import ConsumerGroupTopicPartitions

        self.describe_group(group)
        asked = [ConsumerGroupTopicPartitions(group)]
        return _committed(
            self.ask(
                lambda: self.result(
                    self.raw.list_consumer_group_offsets(asked, request_timeout=self.timeout_s)[
                        group
                    ]
                )
            )
        )

    def groups_with_offsets(
        self, names: Iterable[str]
    ) -> dict[str, tuple[GroupDescription, dict[Partition, int]]]:
        """Groups and what they have committed; those that cannot be had at once are left out.

        All are asked for together: librdkafka asks for the offsets of one group at a time. None
        goes to a coordinator that gave no description, see `group_offsets`.
        """
        from confluent_kafka import ConsumerGroupTopicPartitions

        wanted, timeout_s = sorted(names), self.timeout_s
        if not wanted:
            return {}
        answers = self.raw.describe_consumer_groups(wanted, request_timeout=timeout_s)
        described = {
            name: group_of(found)
            for name in wanted
            if (found := self._result_or_none(answers[name])) is not None
        }
        offsets = {
            name: self.raw.list_consumer_group_offsets(
                [ConsumerGroupTopicPartitions(name)], request_timeout=timeout_s
            )[name]
            for name, group in described.items()
            if group.state != DEAD
        }
        return {
            name: (described[name], _committed(found))
            for name, future in offsets.items()
            if (found := self._result_or_none(future)) is not None
        }

    def set_group_offsets(self, group: str, offsets: Mapping[Partition, int]) -> None:
        """Commit offsets in the name of a group that has no members."""
        from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, TopicPartition

        places = [TopicPartition(*partition, offset) for partition, offset in offsets.items()]
        moved = [ConsumerGroupTopicPartitions(group, places)]

        def ask() -> None:
            futures = self.raw.alter_consumer_group_offsets(moved, request_timeout=self.timeout_s)
            for each in self.result(futures[group]).topic_partitions:
                if each.error is not None:
                    raise KafkaException(each.error)

        self.ask(ask)

    def delete_groups(self, names: Iterable[str]) -> dict[str, BusError | None]:
        """Delete groups; of each, why that did not work, or None."""
        return self._each(
            self.raw.delete_consumer_groups(list(names), request_timeout=self.timeout_s)
        )

    # Asking

    @property
    def raw(self) -> Any:
        """The AdminClient, for what is not here; somebody listens where it connects to."""
        if self._raw is None:
            self.reach()
            config = {**self.config, "error_cb": self.on_error}
            self._raw = make_client(self.bus, _types().AdminClient, config)
        return self._raw

    def reach(self) -> None:
        """Raise UnreachableError unless somebody listens at one of the addresses."""
        addresses = self.bus.addresses
        for address in addresses:
            try:
                socket.create_connection(address, self.timeout_s / len(addresses)).close()
            except OSError:
                continue
            return
        raise UnreachableError(self.bus.bootstrap)

    def ask(self, question: Callable[[], _Answer]) -> _Answer:
        """The answer to a question put to `raw`, asked again while that may help."""
        patience = Patience(self.timeout_s)
        while True:
            try:
                return self.ask_once(question)
            except BusError as error:
                if error.kind is ErrorKind.SILENT or not error.is_passing or not patience.pause():
                    raise

    def ask_once(self, question: Callable[[], _Answer]) -> _Answer:
        """The answer to a question put to `raw`; BusError for what librdkafka says instead."""
        from confluent_kafka import KafkaError, KafkaException

        try:
            return question()
        except KafkaException as error:
            reason: KafkaError = error.args[0]
        except TimeoutError:
            reason = KafkaError(KafkaError._TIMED_OUT)
        raise self.failure(reason)

    def result(self, future: "Future[_Answer]") -> _Answer:
        """What one of `raw`'s futures comes to."""
        # librdkafka keeps to the time it was given.
        return future.result(self.timeout_s + _ANSWER_S)

    def failure(self, reason: NamedError) -> BusError:
        """The error for what librdkafka said; who was refused at the log-on is told that."""
        if self._raw is not None and is_silence(reason):
            self._raw.poll(0)  # complaints are handed over by polling
        return self._complaints.failure(reason, self.timeout_s)

    def on_error(self, error: "KafkaError") -> None:
        """For `error_cb`, also of other clients of the same bus: kept to explain a silence with."""
        self._complaints.on_error(error)

    def _described(
        self, topics: Iterable[str], *, is_hidden_absent: bool
    ) -> dict[str, TopicDescription]:
        from confluent_kafka import KafkaException, TopicCollection

        names = list(dict.fromkeys(topics))
        if not names:
            return {}

        def ask() -> dict[str, TopicDescription]:
            futures = self.raw.describe_topics(
                TopicCollection(names), request_timeout=self.timeout_s
            )
            found = dict[str, TopicDescription]()
            for name, future in futures.items():
                try:
                    each: Any = self.result(future)
                except KafkaException as error:
                    is_hidden = error.args[0].name() == _HIDDEN
                    if not (is_unknown(error.args[0]) or (is_hidden and is_hidden_absent)):
                        raise
                else:
                    found[name] = topic_of(each)
            return found

        return self.ask(ask)

    def _offsets(
        self,
        partitions: Iterable[_Partition],
        spec: object,
        isolation_level: str,
        *,
        is_partial: bool,
        least: int = 0,
    ) -> dict[_Partition, int]:
        import confluent_kafka
        from confluent_kafka import KafkaException

        kafka: Any = confluent_kafka  # its annotations hide half of what it exports
        isolation = kafka.IsolationLevel[isolation_level.upper()]
        wanted = {each: kafka.TopicPartition(*each) for each in partitions}
        if not wanted:
            return {}
        asked = dict.fromkeys(wanted.values(), spec)

        def ask() -> dict[_Partition, int]:
            futures = self.raw.list_offsets(
                asked, isolation_level=isolation, request_timeout=self.timeout_s
            )
            found = dict[_Partition, int]()
            for each, place in wanted.items():
                try:
                    offset = self.result(futures[place]).offset
                    if offset < least:  # librdkafka's now and then, instead of an error
                        raise KafkaException(kafka.KafkaError(_OFFSET_NOT_AVAILABLE))
                    found[each] = offset
                except KafkaException as error:
                    if not is_partial or not is_leaderless(error.args[0]):
                        raise
            return found

        return self.ask(ask)

    def _result_or_none(self, future: "Future[_Answer]") -> _Answer | None:
        from confluent_kafka import KafkaException

        try:
            return self.result(future)
        except (KafkaException, TimeoutError):
            return None

    def _of_brokers(self, question: "Callable[[WireConnection], _Answer]") -> Iterator[_Answer]:
        """What those brokers say that answer: it is good to know, and nothing depends on it."""
        from headrace.client.wire import WireConnection

        for broker in self.describe_cluster().brokers:
            with contextlib.suppress(BusError):
                address = broker.host, broker.port
                with WireConnection(address, self.bus, self.timeout_s) as connection:
                    answer = question(connection)
                yield answer

    def _each(self, futures: "Mapping[str, Future[object]]") -> dict[str, BusError | None]:
        from confluent_kafka import KafkaError, KafkaException

        outcome = dict[str, BusError | None]()
        for name, future in futures.items():
            try:
                self.result(future)
            except KafkaException as error:
                outcome[name] = self.failure(error.args[0])
            except TimeoutError:
                outcome[name] = self.failure(KafkaError(KafkaError._TIMED_OUT))
            else:
                outcome[name] = None
        return outcome


def _committed(answer: Any) -> dict[Partition, int]:
    return {
        (each.topic, each.partition): each.offset
        for each in answer.topic_partitions or ()
        if each.offset >= 0
    }


def _types() -> Any:
    """The module confluent_kafka.admin: Any, since its annotations hide half of what it exports."""
    import confluent_kafka.admin

    return confluent_kafka.admin
