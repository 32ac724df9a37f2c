"""What is to be done for each topic, decided from facts alone.

While a topic is copied its target keeps everything and takes every timestamp; the source's own
configs come when the copy is complete. Else retention would remove what has just arrived.
"""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from headrace.mirror.endpoint import MirroredTopic
from headrace.mirror.errors import MirrorRefusedError
from headrace.mirror.identity import (
    SOURCE,
    TARGET,
    gone_from_target,
    is_other,
    made_anew,
    other_source,
    other_target,
)
from headrace.mirror.state import DONE, STATE_TOPIC, TopicNote

CREATE, USE, RESUME = "create", "use the empty topic", "go on"

_MAX_MESSAGE = "max.message.bytes"
_MIN_IN_SYNC = "min.insync.replicas"
_FOREVER = str(2**63 - 1)
# What keeps a target whole while it is written to.
_KEEPING = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}
# What lets a target take the source's times; needed as long as the mirror writes.
_TIMES = {
    "message.timestamp.type": "CreateTime",
    "message.timestamp.before.max.ms": _FOREVER,
    "message.timestamp.after.max.ms": _FOREVER,
}
# What belongs to a cluster, not to the data.
_PLACE_BOUND = re.compile(r"(leader|follower)\.replication\.throttled\.replicas|remote\..*")


class TopicPlan(NamedTuple):
    """One topic; `target` is None when it is to be created."""

    source: MirroredTopic
    target: MirroredTopic | None
    note: TopicNote | None
    chain: tuple[str, ...]

    @property
    def action(self) -> str:
        if self.target is None:
            return CREATE
        return RESUME if self.note else USE


def select(names: Iterable[str], pattern: re.Pattern[str]) -> list[str]:
    """The topics to mirror: never a mirror's own state, nor Kafka's own topics."""
    return [
        name
        for name in sorted(names)
        if name != STATE_TOPIC and not name.startswith("__") and pattern.fullmatch(name)
    ]


def refuse_one_cluster(source_id: str, target_id: str, source: str, target: str) -> None:
    """Both ends must not be the same cluster."""
    if source_id == target_id:
        raise MirrorRefusedError(
            f"{source} and {target} are the same cluster ({source_id}): a mirror onto itself would "
            "never end; name another --to"
        )


def refuse_loops(chains: Mapping[str, tuple[str, ...]], target_id: str, target: str) -> None:
    """No topic may go back to a cluster it came through."""
    if looping := sorted(topic for topic, chain in chains.items() if target_id in chain):
        raise MirrorRefusedError(
            f"{', '.join(looping)} came from {target} ({target_id}) in the first place, so "
            "mirroring back would be a loop; leave out with --topics what was mirrored here"
        )


def live_note(notes: Mapping[str, TopicNote], topic: MirroredTopic) -> tuple[str, TopicNote] | None:
    """The cluster a topic came from and the note on it; None for a topic of its own.

    A note on a topic that was deleted and made anew says nothing about the new one.
    """
    candidates = [
        (source_id, note)
        for source_id, note in notes.items()
        if not is_other(note.target_topic_id, topic.topic_id)
    ]
    # One with the very id before one that only may be the topic's.
    return min(candidates, key=lambda each: each[1].target_topic_id != topic.topic_id, default=None)


def chain_at(
    source_id: str, notes: Mapping[str, TopicNote], topic: MirroredTopic
) -> tuple[str, ...]:
    """The clusters a topic's messages have come through when they leave this source."""
    known = live_note(notes, topic)
    return (*known[1].chain, source_id) if known else (source_id,)


def plan_topic(
    source: MirroredTopic,
    target: MirroredTopic | None,
    notes: Mapping[str, TopicNote],
    *,
    source_id: str,
    target_id: str,
    name: str,
    chain: tuple[str, ...],
    is_target_empty: bool,
    is_anew: bool,
) -> TopicPlan:
    """Decide for one topic; raises MirrorRefusedError when the target has another use for it.

    `is_anew`: what was copied before, and is not to be gone on with, may be begun again in a target
    that is not there or empty.
    """
    topic = source.name
    own = notes.get(source_id)
    if target is None:
        if own is not None and not is_anew:
            raise gone_from_target(topic, own.target_topic_id)
        return TopicPlan(source, None, None, chain)
    may_begin = is_anew and is_target_empty
    known = live_note(notes, target)
    note = None
    if known is not None:
        note = _checked(known, source, source_id, target_id, name, may_begin=may_begin)
    elif own is not None and not may_begin:
        raise made_anew(
            TARGET, topic, own.target_topic_id, target.topic_id, is_empty=is_target_empty
        )
    elif not is_target_empty:
        raise MirrorRefusedError(
            f"topic {topic} at the target has messages that no mirror has written, as far as "
            f"{STATE_TOPIC} there knows; delete it there, or leave it out with --topics"
        )
    if target.partition_count > source.partition_count or (
        note is None and target.partition_count != source.partition_count
    ):
        raise MirrorRefusedError(
            f"topic {topic} has {source.partition_count} partitions at the source and "
            f"{target.partition_count} at the target; delete it there, or leave it out with "
            "--topics"
        )
    return TopicPlan(source, target, note, chain)


def _checked(
    known: tuple[str, TopicNote],
    source: MirroredTopic,
    source_id: str,
    target_id: str,
    name: str,
    *,
    may_begin: bool,
) -> TopicNote | None:
    """The note to go on from; None to begin anew. Raises when the copy is another's."""
    (owner_id, note), topic = known, source.name
    if owner_id != source_id:
        raise other_source(topic, owner_id, note.source_topic_id, source_id)
    if note.name != name:
        raise MirrorRefusedError(
            f"topic {topic} at the target belongs to the mirror {note.name}; go on with "
            f"--name {note.name}, or leave it out with --topics"
        )
    if is_other(note.target_cluster_id, target_id):
        if may_begin:
            return None
        raise other_target(topic, note.target_cluster_id, target_id)
    if is_other(note.source_topic_id, source.topic_id):
        if may_begin:
            return None
        raise made_anew(SOURCE, topic, note.source_topic_id, source.topic_id)
    return note


def copying_configs(source: Mapping[str, str], max_message_bytes: int) -> dict[str, str]:
    """What a target has while it is written to by a copy."""
    largest = max(int(source.get(_MAX_MESSAGE, 0)), max_message_bytes)
    return {**_KEEPING, **_TIMES, _MAX_MESSAGE: str(largest)}


class FinalConfigs(NamedTuple):
    """`wanted`: None returns a config to its default. `skipped`: why others are not set."""

    wanted: dict[str, str | None]
    skipped: dict[str, str]


def final_configs(configs: Mapping[str, str], replication_factor: int, phase: str) -> FinalConfigs:
    """What a target has when its copy is complete; some only when nothing follows (DONE)."""
    wanted: dict[str, str | None] = dict.fromkeys([*_KEEPING, *_TIMES, _MAX_MESSAGE])
    skipped = dict[str, str]()
    for name, value in configs.items():
        if _PLACE_BOUND.fullmatch(name):
            skipped[name] = "it belongs to the source's cluster"
        elif name == _MIN_IN_SYNC and int(value) > replication_factor:
            skipped[name] = f"the target has {replication_factor} replicas"
        else:
            wanted[name] = value
    if phase != DONE:
        for name, value in _TIMES.items():
            if wanted[name] is not None:
                skipped[name] = "it would change times as long as the mirror follows"
            wanted[name] = value
        del wanted[_MAX_MESSAGE]
    return FinalConfigs(wanted, skipped)
