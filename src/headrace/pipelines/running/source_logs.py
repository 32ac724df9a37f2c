"""The logs a checkpoint's offsets are of: which cluster, which topics, known by their ids.

A name is no identity: a topic can be deleted and made again, and another cluster has an `orders`
of its own. An offset of one log says nothing about another, so going on there would leave out
records, or take some for others.

A log keeps the name it was first seen under here (its topic's id then), also when the user says
that it has moved to another bus: sinks know it by that name.
"""

import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from headrace.pipelines.errors import PipelineDefinitionError, RunError
from headrace.pipelines.running.checkpoint import Checkpoint
from headrace.pipelines.spans import Batch, Log, Spans
from headrace.pipelines.topic_positions import BusIdentity, BusSilentError

FAIL, SAME, ANEW = "fail", "same", "anew"
ON_OTHER_LOG = (FAIL, SAME, ANEW)

_CLUSTER, _TOPICS = "cluster_id", "topics"

Ask = Callable[[Iterable[str]], BusIdentity]


class OtherLogError(RunError):
    """What answers under a name is not what the checkpoint has read."""


@dataclass(frozen=True, slots=True)
class _Known:
    """A topic of the checkpoint: its id on the bus now, and the name of its log."""

    topic_id: str
    log_id: str


class SourceLogs:
    """What a checkpoint knows of its logs, kept in its note. Used by one thread at a time."""

    def __init__(self, checkpoint: Checkpoint, bootstrap: str, ask: Ask) -> None:
        self._checkpoint = checkpoint
        self._bootstrap = bootstrap
        self._ask = ask
        facts = checkpoint.facts
        # Whether a version that knew no ids began it.
        self.is_former = checkpoint.is_begun and _TOPICS not in facts
        self._cluster_id = str(facts.get(_CLUSTER) or "")
        self._topics = {
            name: _Known(each["id"], each["log"])
            for name, each in (facts.get(_TOPICS) or {}).items()
        }

    def ask_by(self, ask: Ask) -> None:
        """Ask in another way from now on."""
        self._ask = ask

    def start(self, topics: Iterable[str], on_other: str, tell: Callable[[str], None]) -> None:
        """See that the bus has the logs of the checkpoint; `on_other` says what to do if not."""
        found = self._ask({*topics, *self._topics})
        other = self._difference(found)
        if other is None:
            self._note(found)
        elif on_other == FAIL:
            raise OtherLogError(f"{other}; {_WAYS_OUT}")
        elif on_other == SAME:
            self._note(found, is_moved=True)
            tell(f"{other}; taken for the same log, as was asked for")
        else:
            is_same_cluster = not self._is_other_cluster(found)
            self._topics = {
                name: known
                for name, known in self._topics.items()
                if is_same_cluster and found.topic_ids.get(name) == known.topic_id
            }
            place = self._checkpoint.set_aside(self._topics)
            self._note(found)
            tell(f"{other}; read from the start, as was asked for; the old position is in {place}")

    def check(self, topics: Iterable[str] | None = None) -> BusIdentity:
        """Raise OtherLogError if one of these, or the cluster, is no longer what it was.

        None: all topics the checkpoint knows.
        """
        found = self._ask(self._topics if topics is None else topics)
        other = self._difference(found)
        if other is not None:
            raise OtherLogError(f"{other}; {_WAYS_OUT}")
        self._note(found)
        return found

    def batch(self, number: int) -> Batch:
        """The batch that Spark has planned under this number."""
        ranges = self._checkpoint.ranges(number)
        if ranges is None:
            return Batch(number)
        held = {each: bounds for each, bounds in ranges.items() if bounds[0] < bounds[1]}
        topics = {topic for topic, _ in held}
        if missing := topics - self.check(topics).topic_ids.keys():
            # Deleted, or not known yet to the node that was asked: nobody knows which log it is.
            raise BusSilentError(
                f"{self._bootstrap} knows no topic {min(missing)}, of which batch {number} holds "
                "records"
            )
        # Of a topic that is gone by now the batch may name the end, though it holds nothing of it.
        logs = {
            each: Log(*each, self._topics[each[0]].log_id)
            for each in ranges
            if each[0] in self._topics
        }
        first = self._checkpoint.first_offsets() or {}
        before = {
            logs[topic, partition]: (first.get(topic, {}).get(str(partition), 0), start)
            for (topic, partition), (start, _) in ranges.items()
            if (topic, partition) in logs
        }
        holds = Spans.of({logs[each]: bounds for each, bounds in held.items()})
        return Batch(number, holds, self._cluster_id, Spans.of(before))

    def plan_without_gone(self, tell: Callable[[str], None]) -> None:
        """Where a planned batch holds records of topics that are gone, have it planned anew."""
        planned = self._checkpoint.planned_topics()
        gone = planned - self._ask(planned).topic_ids.keys() if planned else set[str]()
        if gone:
            place = self._checkpoint.forget_plan()
            tell(
                f"{self._bootstrap} has no topic {', '.join(sorted(gone))} any more, of which a "
                f"batch was planned and not done: it is planned anew without, as was asked for; "
                f"the plan is in {place}"
            )

    def _difference(self, found: BusIdentity) -> str | None:
        """What is not as it was, or None. What is not known, on either side, is not compared."""
        place = self._checkpoint.place
        if self._is_other_cluster(found):
            return (
                f"checkpoint {place} has read the cluster {self._cluster_id}, and at "
                f"{self._bootstrap} answers {found.cluster_id}"
            )
        for name, known in sorted(self._topics.items()):
            topic_id = found.topic_ids.get(name)
            if topic_id and known.topic_id and topic_id != known.topic_id:
                return (
                    f"topic {name} was deleted and made again since checkpoint {place} read it "
                    f"(its id was {known.topic_id} and is {topic_id})"
                )
        return None

    def _is_other_cluster(self, found: BusIdentity) -> bool:
        is_known = bool(self._cluster_id and found.cluster_id)
        return is_known and found.cluster_id != self._cluster_id

    def _note(self, found: BusIdentity, *, is_moved: bool = False) -> None:
        """Take in what is new, and keep it before a sink is told of it."""
        topics = dict(self._topics)
        for name, topic_id in found.topic_ids.items():
            known = topics.get(name)
            if known is None or not known.topic_id:
                # Where the bus gives no id, the log gets a name of its own here.
                log_id = known.log_id if known else topic_id or uuid.uuid4().hex
                topics[name] = _Known(topic_id, log_id)
            elif is_moved:
                topics[name] = _Known(topic_id, known.log_id)
        is_new_cluster = bool(found.cluster_id) and found.cluster_id != self._cluster_id
        if topics == self._topics and not is_new_cluster:
            return
        self._topics = topics
        self._cluster_id = found.cluster_id or self._cluster_id
        self._checkpoint.add_facts({_CLUSTER: self._cluster_id, _TOPICS: _as_json(topics)})


def parse_on_other_log(text: str) -> str:
    """One of ON_OTHER_LOG; PipelineDefinitionError for what is none."""
    if text not in ON_OTHER_LOG:
        raise PipelineDefinitionError(f"on-other-log {text}: write {', '.join(ON_OTHER_LOG)}")
    return text


_WAYS_OUT = (
    f"choose another --name or --checkpoint, or say --on-other-log {ANEW} to read what is there "
    f"from the start, or {SAME} if it is a mirror's copy with the same offsets"
)


def _as_json(topics: Mapping[str, _Known]) -> dict[str, Any]:
    return {
        name: {"id": known.topic_id, "log": known.log_id} for name, known in sorted(topics.items())
    }
