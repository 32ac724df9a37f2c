"""What groups see of the broker: its topics, its settings, and member ids that are new."""

from base64 import urlsafe_b64encode
from functools import partial
from uuid import UUID, uuid4

from headrace.broker.errors import TopicError
from headrace.broker.topics import Topics
from headrace.coordinators.groups.limits import ClassicLimits, ConsumerLimits
from headrace.coordinators.groups.messages import TopicShape
from headrace.coordinators.groups.registry import GroupEnvironment
from headrace.model import Topic
from headrace.settings.broker_settings import BrokerSettings


def group_environment(topics: Topics, settings: BrokerSettings) -> GroupEnvironment:
    """Everything groups ask their broker for."""
    return GroupEnvironment(
        BrokerTopics(topics),
        partial(classic_limits, settings),
        ConsumerLimitsByGroup(topics, settings).of_group,
        lambda client: f"{client}-{uuid4()}",
        lambda client: urlsafe_b64encode(uuid4().bytes).rstrip(b"=").decode(),
    )


class BrokerTopics:
    """The broker's topics as a `TopicsView`."""

    def __init__(self, topics: Topics) -> None:
        self._topics = topics
        self._names_of: int | None = None  # generation
        self._names: frozenset[str] = frozenset()

    @property
    def generation(self) -> int:
        """Changes whenever a topic does."""
        return self._topics.generation

    def shape(self, name: str) -> TopicShape | None:
        """The topic of this name, or None."""
        try:
            return _shape(self._topics.get(name))
        except TopicError:
            return None

    def shape_by_id(self, topic_id: UUID) -> TopicShape | None:
        """The topic with this id, or None."""
        try:
            return _shape(self._topics.get_by_id(topic_id))
        except TopicError:
            return None

    def names(self) -> frozenset[str]:
        """All topics, internal ones too; the same object until a topic comes or goes."""
        if self._names_of != self._topics.generation:
            self._names_of = self._topics.generation
            names = frozenset(self._topics.names())
            # A config that changed makes a generation, too: those who compare need not look again.
            if names != self._names:
                self._names = names
        return self._names


def _shape(topic: Topic) -> TopicShape:
    return TopicShape(topic.topic_id, topic.name, topic.partition_count)


def classic_limits(settings: BrokerSettings) -> ClassicLimits:
    """What the broker allows classic groups."""
    return ClassicLimits(
        min_session_timeout_ms=settings.int("group.min.session.timeout.ms"),
        max_session_timeout_ms=settings.int("group.max.session.timeout.ms"),
        max_size=settings.int("group.max.size"),
        initial_rebalance_delay_ms=settings.int("group.initial.rebalance.delay.ms"),
    )


class ConsumerLimitsByGroup:
    """What the broker, and a group's own configs, allow groups of the new protocol."""

    def __init__(self, topics: Topics, settings: BrokerSettings) -> None:
        self._topics, self._settings = topics, settings
        self._generation = -1
        self._by_group: dict[str, ConsumerLimits] = {}

    def of_group(self, group_id: str) -> ConsumerLimits:
        """The limits of one group; asked for at every heartbeat, so remembered."""
        if self._generation != self._topics.generation:  # changes with every config, too
            self._generation = self._topics.generation
            self._by_group.clear()
        limits = self._by_group.get(group_id)
        if limits is None:
            limits = self._by_group[group_id] = self._read(group_id)
        return limits

    def _read(self, group_id: str) -> ConsumerLimits:
        settings = self._settings
        of_group = partial(settings.group_int, group_id)
        return ConsumerLimits(
            session_timeout_ms=of_group("group.consumer.session.timeout.ms"),
            heartbeat_interval_ms=of_group("group.consumer.heartbeat.interval.ms"),
            max_size=settings.int("group.consumer.max.size"),
            assignors=tuple(settings.list("group.consumer.assignors")),
            migration_policy=settings.str("group.consumer.migration.policy").lower(),
            classic_max_size=settings.int("group.max.size"),
            assignment_interval_ms=of_group("group.consumer.assignment.interval.ms"),
        )
