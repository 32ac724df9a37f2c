"""What a mirror has done, for a table or a program."""

from typing import NamedTuple

from headrace.mirror.groups import GroupMove


class TopicSummary(NamedTuple):
    """One topic. `messages` and `size_bytes` are those of this run, `total` all that is there."""

    topic: str
    partitions: int
    messages: int
    size_bytes: int
    total: int
    verified: str

    def with_earlier(self, earlier: "TopicSummary | None") -> "TopicSummary":
        """With what an earlier session of the same run has copied."""
        if earlier is None:
            return self
        return self._replace(
            messages=self.messages + earlier.messages,
            size_bytes=self.size_bytes + earlier.size_bytes,
        )


class Summary(NamedTuple):
    """`is_complete` is False when it was stopped before the end."""

    topics: list[TopicSummary]
    groups: list[GroupMove]
    seconds: float  # of copying; reading the target again comes on top
    verify_seconds: float
    is_complete: bool


class Outlook(NamedTuple):
    """What would be done for one topic."""

    topic: str
    action: str
    partitions: int
    messages: int  # as offsets count them
    configs: dict[str, str]
