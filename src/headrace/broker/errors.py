"""What the broker refuses of topics and transactions."""

from uuid import UUID

from headrace.errors import HeadraceError
from headrace.records.errors import RecordError


class UnexpectedTransactionError(RecordError):
    """A transactional batch that belongs to no transaction this broker knows."""


class TopicError(HeadraceError):
    """A topic or partition that is not, or may not be."""


class UnknownTopicError(TopicError):
    """No such topic or partition."""

    def __init__(self, topic: str, partition: int | None = None) -> None:
        what = topic if partition is None else f"{topic}-{partition}"
        super().__init__(f"unknown topic or partition {what}")
        self.topic, self.partition = topic, partition


class UnknownTopicIdError(TopicError):
    """No topic has this id."""

    def __init__(self, topic_id: UUID) -> None:
        super().__init__(f"unknown topic id {topic_id}")
        self.topic_id = topic_id


class TopicExistsError(TopicError):
    """The name is taken."""

    def __init__(self, topic: str) -> None:
        super().__init__(f"Topic '{topic}' already exists.")
        self.topic = topic


class InvalidTopicError(TopicError):
    """The name cannot be a topic's."""


class InvalidPartitionsError(TopicError):
    """The number of partitions is impossible."""


class InvalidReplicationFactorError(TopicError):
    """One node cannot hold this many replicas."""


class InvalidReplicaAssignmentError(TopicError):
    """The manual assignment names brokers or partitions that are not there."""
