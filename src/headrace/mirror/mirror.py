"""A mirror from its first question to its last: plan, sessions, what is done about failures."""

import time
from collections.abc import Iterable

from headrace.mirror.endpoint import Endpoint
from headrace.mirror.errors import MirrorError, MirrorIdentityError, MirrorRefusedError
from headrace.mirror.groups import Groups
from headrace.mirror.identity import SOURCE, TARGET, is_other, made_anew, other_cluster
from headrace.mirror.interface import MirrorListener, Options, Outlook, Summary, TopicSummary
from headrace.mirror.lock import locked
from headrace.mirror.plan import (
    TopicPlan,
    chain_at,
    plan_topic,
    refuse_loops,
    refuse_one_cluster,
    select,
)
from headrace.mirror.session import Session
from headrace.mirror.state_topic import StateTopic
from headrace.mirror.writer import ConnectionLostError, SessionFailedError
from headrace.patience import StoppedError

_NEWS_S = 5.0  # how often a following mirror looks for new topics and partitions
# A producer that fails again without having moved anything will do so for ever.
_MOST_FAILURES = 5


class TopicIsBackError(Exception):
    """A topic that was not at the source for a while is there again. Never leaves the module."""


class Mirror:
    """Owned by one thread. `source` and `target` say themselves whether a stop was asked for."""

    def __init__(
        self, source: Endpoint, target: Endpoint, options: Options, listener: MirrorListener
    ) -> None:
        self._source, self._target = source, target
        self._options, self._listener = options, listener
        self._state = StateTopic(target)
        self._source_id = self._target_id = ""
        self._next_news = 0.0
        self._earlier: dict[str, TopicSummary] = {}  # what sessions before this one have done
        self._seconds = 0.0
        self._left_out = set[str]()  # new topics that were refused: told once, then left alone

    def look(self) -> list[Outlook]:
        """What would be done; nothing is written."""
        try:
            return self._look()
        except StoppedError as error:
            raise MirrorError("stopped before all was known") from error

    def _look(self) -> list[Outlook]:
        self._identify()
        self._state.load()
        outlooks = list[Outlook]()
        for plan in self._plan(self._wanted_topics()):
            places = plan.source.partitions
            starts = self._source.oldest_offsets(places)
            stops = self._source.visible_ends(places)
            messages = 0
            for place in places:
                checkpoint = self._state.checkpoint(self._source_id, place) if plan.note else None
                start = starts[place] if checkpoint is None else checkpoint.source
                messages += stops[place] - start
            outlooks.append(
                Outlook(plan.source.name, plan.action, len(places), messages, plan.source.configs)
            )
        return outlooks

    def run(self) -> Summary:
        """Copy, and go on after failures; returns what was done."""
        try:
            return self._run()
        except StoppedError:  # while an end was away
            earlier = list(self._earlier.values())
            return Summary(earlier, [], self._seconds, 0.0, self._options.is_following)

    def _run(self) -> Summary:
        self._identify()
        with locked(self._options.state_dir, self._source_id, self._target_id, self._options.name):
            self._state.load()
            plans = self._plan(self._wanted_topics())
            if not plans and not self._options.is_following:
                raise MirrorRefusedError(
                    f"no topic at {self._source.label} matches --topics "
                    f"{self._options.topics.pattern}"
                )
            self._state.create(self._options.replication_factor)
            groups = None
            if self._options.groups is not None:
                groups = Groups(
                    self._source,
                    self._target,
                    self._listener,
                    self._options.groups,
                    is_rewinding=self._options.is_rewinding,
                )
            self._source.is_patient = self._target.is_patient = True
            return self._sessions(plans, groups)

    def _sessions(self, plans: list[TopicPlan], groups: Groups | None) -> Summary:
        failures, moved = 0, -1
        while True:
            session = Session(
                self._source,
                self._target,
                (self._source_id, self._target_id),
                self._state,
                self._options,
                self._listener,
                groups,
            )
            try:
                return self._session(session, plans)
            except ConnectionLostError as error:
                self._listener.note(f"{self._target.label}: {error}; going on from what arrived")
            except TopicIsBackError as error:
                self._listener.note(f"{error}; going on with it")
            except SessionFailedError as error:
                arrived = sum(copy.acked.target for copy in session.copies.values())
                failures = failures + 1 if arrived <= moved else 1
                moved = max(moved, arrived)
                if failures >= _MOST_FAILURES:
                    raise MirrorError(f"{self._target.label}: {error}") from error
                self._listener.note(
                    f"going on from what has arrived, for the producer failed: {error}"
                )
            except MirrorRefusedError:
                raise
            except MirrorError as error:
                raise session.explain(error) from error
            finally:
                session.close()
                self._seconds += session.copy_seconds
                for each in session.summary():
                    self._earlier[each.topic] = each.with_earlier(self._earlier.get(each.topic))
            # After its producer is gone: nothing may be sent again while an end is waited for.
            plans = self._plan_again()

    def _session(self, session: Session, plans: list[TopicPlan]) -> Summary:
        is_complete = False
        try:
            session.begin(plans)
            session.run(lambda: self._look_for_news(session))
            session.complete()
            is_complete = True
        except StoppedError:
            pass
        if not session.stop():
            self._listener.note(
                "the target did not take everything before the end; the next run goes on from "
                "what has arrived"
            )
        seconds = session.copy_seconds or time.monotonic() - session.began_at
        return Summary(
            [each.with_earlier(self._earlier.get(each.topic)) for each in session.summary()],
            session.moves,
            self._seconds + seconds,
            session.verify_seconds,
            is_complete or self._options.is_following,
        )

    def _look_for_news(self, session: Session) -> None:
        """Take up topics and partitions that are new at the source."""
        if time.monotonic() < self._next_news:
            return
        self._next_news = time.monotonic() + _NEWS_S
        found = self._source.topics(self._wanted_topics())
        for name in session.topics.keys() & found.keys():
            noted, there = session.topics[name].topic_id, found[name].topic_id
            if is_other(noted, there):
                raise made_anew(SOURCE, name, noted, there)
            if name in session.away:
                raise TopicIsBackError(f"topic {name} is at the source again")
        new = [
            name
            for name, facts in found.items()
            if name not in self._left_out
            and (
                name not in session.topics
                or session.topics[name].partition_count < facts.partition_count
            )
        ]
        for name in new:
            try:
                session.begin(self._plan([name]))
            except MirrorIdentityError:
                raise  # it is no news, but something else under a name that was copied
            except MirrorRefusedError as error:
                self._left_out.add(name)
                self._listener.note(f"left out: {error}")

    def _identify(self) -> None:
        """Learn the clusters' ids; once they are known, they must not change."""
        source_id, target_id = self._source.cluster_id(), self._target.cluster_id()
        if is_other(self._source_id, source_id):
            raise other_cluster(SOURCE, self._source.label, self._source_id, source_id)
        if is_other(self._target_id, target_id):
            raise other_cluster(TARGET, self._target.label, self._target_id, target_id)
        self._source_id, self._target_id = source_id, target_id
        refuse_one_cluster(self._source_id, self._target_id, self._source.label, self._target.label)

    def _wanted_topics(self) -> list[str]:
        return select(self._source.topic_names(), self._options.topics)

    def _plan_again(self) -> list[TopicPlan]:
        """Decide anew for a new session: nothing may have become another meanwhile."""
        self._identify()
        return self._plan(self._wanted_topics())

    def _plan(self, names: Iterable[str]) -> list[TopicPlan]:
        """Decide for all topics before anything is written for one."""
        sources = self._source.topics(names)
        source_state = StateTopic(self._source)
        source_state.load()
        chains = {
            name: chain_at(self._source_id, source_state.notes_of(name), facts)
            for name, facts in sources.items()
        }
        refuse_loops(chains, self._target_id, self._target.label)
        there = set(self._target.topic_names())
        targets = self._target.topics([name for name in sources if name in there])
        ends = self._target.visible_ends(
            place for facts in targets.values() for place in facts.partitions
        )
        filled = {place.topic for place, end in ends.items() if end}
        return [
            plan_topic(
                facts,
                targets.get(name),
                self._state.notes_of(name),
                source_id=self._source_id,
                target_id=self._target_id,
                name=self._options.name,
                chain=chains[name],
                is_target_empty=name not in filled,
                is_anew=self._options.is_anew,
            )
            for name, facts in sources.items()
        ]
