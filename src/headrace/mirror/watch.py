"""The topics of one end, each with the id it had when it was taken up: asked for again and again.

Whoever has read something asks afterwards, and believes it only then. Whoever notes something does
the same. What a broker tells that has not heard of a change itself is the one thing this misses.
"""

from collections.abc import Callable, Collection, Iterable

from headrace.mirror.endpoint import Endpoint
from headrace.mirror.identity import (
    TARGET,
    gone_from_target,
    is_other,
    made_anew,
    other_cluster,
)

# A broker that has just started, or just heard of a topic, may not know it for a moment.
_AWAY_S = 5.0


# Raises when one of these topics was made anew at either end; returns those the source has no more.
Confirm = Callable[[Collection[str]], Collection[str]]


class TopicWatch:
    """`side` is SOURCE or TARGET. Owned by one thread."""

    def __init__(self, end: Endpoint, side: str, its_cluster_id: str) -> None:
        self._end, self._side, self._cluster_id = end, side, its_cluster_id
        self._ids: dict[str, str] = {}

    @property
    def topics(self) -> Collection[str]:
        return self._ids.keys()

    def expect(self, topic: str, topic_id: str) -> None:
        """Hold a topic against this id from now on."""
        self._ids[topic] = topic_id

    def forget(self, topic: str) -> None:
        """Ask for a topic no more."""
        del self._ids[topic]

    def confirm(self, topics: Iterable[str]) -> set[str]:
        """Return when these topics are those expected, with the names of those that are gone.

        Raises MirrorIdentityError for one made anew, and for one that is gone from the target.
        """
        asked = set(topics)
        patience = self._end.patience(_AWAY_S)
        while len(found := self._look(asked)) < len(asked) and patience.pause():
            pass
        gone = asked - found
        if gone and self._side == TARGET:
            topic = min(gone)
            raise gone_from_target(topic, self._ids[topic])
        return gone

    def confirm_cluster(self) -> None:
        """Return when the cluster is the one it was."""
        found = self._end.cluster_id()
        if is_other(self._cluster_id, found):
            raise other_cluster(self._side, self._end.label, self._cluster_id, found)

    def _look(self, topics: set[str]) -> set[str]:
        found = self._end.topic_ids(topics)
        for topic, topic_id in found.items():
            if is_other(self._ids[topic], topic_id):
                raise made_anew(self._side, topic, self._ids[topic], topic_id)
        return set(found)
