"""When the expressions of a group are resolved to topics, and what becomes of the group then.

As in Kafka that is never part of a heartbeat: one that brings a new expression is answered with
what the member subscribes to by name, the topics that match follow in a later epoch. Internal
topics match like any other.
"""

from collections.abc import Iterator

from headrace.coordinators.groups.consumer.patterns import TopicMatcher
from headrace.coordinators.groups.consumer.state import GroupState
from headrace.coordinators.groups.consumer.subscriptions import group_topics, metadata_hash
from headrace.coordinators.groups.messages import GroupOutcome, TopicsView
from headrace.coordinators.groups.records import (
    ConsumerGroupMetadata,
    GroupRecord,
    ResolvedRegex,
)


class Search:
    """One look at the topics there are. `steps` does the work, a slice at a time."""

    def __init__(self, generation: int, regexes: tuple[str, ...], steps: Iterator[None]) -> None:
        self.generation, self.regexes, self.steps = generation, regexes, steps


class Resolution:
    """The expressions of one group. Soft state; what is found becomes records."""

    def __init__(self, state: GroupState) -> None:
        self._state = state
        self.in_use = state.regex_counts  # for those in a hurry: mostly there are none
        self._matcher = TopicMatcher()
        self._searching: Search | None = None
        self._looked_at: int | None = None  # generation of the topics

    def check(self, regex: str) -> None:
        """Raise InvalidRegexError unless it is an expression."""
        self._matcher.check(regex)

    def is_due(self, topics: TopicsView) -> bool:
        """Whether there is an expression to resolve, or topics to hold against them."""
        state = self._state
        return (
            bool(self.in_use)
            and self._searching is None
            and (
                self._looked_at != topics.generation
                or state.regex_counts.keys() != state.regexes.keys()
            )
        )

    def begin(self, topics: TopicsView) -> Search:
        """Start a search; until it has ended, no other is due."""
        regexes = tuple(sorted(self._state.regex_counts))
        search = Search(topics.generation, regexes, self._matcher.search(regexes, topics.names()))
        self._searching = search
        return search

    def outcome(self, search: Search, topics: TopicsView, now_ms: int) -> GroupOutcome:
        """What a search that came to its end has found: news are written, and make an epoch."""
        self._searching = None
        state = self._state
        regexes = dict(state.regexes)
        records: list[GroupRecord] = []
        is_news = False
        for regex in search.regexes:
            if regex not in state.regex_counts:
                continue  # nobody uses it any more
            found, known = self._matcher.found(regex), regexes.get(regex)
            before = frozenset(known.topics) if known else frozenset()
            if known is not None and before == found:
                continue
            regexes[regex] = ResolvedRegex(
                state.group_id, regex, tuple(sorted(found)), search.generation, now_ms
            )
            records.append(regexes[regex])
            # Of a topic that is gone the group hears by its hash.
            is_news |= any(topics.shape(name) is not None for name in found ^ before)
        if records:
            new_hash = metadata_hash(group_topics(state, regexes), topics)
            if is_news or new_hash != state.metadata_hash:
                records.append(ConsumerGroupMetadata(state.group_id, state.epoch + 1, new_hash))
        return GroupOutcome(records)

    def end(self, search: Search) -> None:
        """The outcome is written."""
        self._looked_at = search.generation

    def abandon(self) -> None:
        """The search will not come to its end."""
        self._searching = None
