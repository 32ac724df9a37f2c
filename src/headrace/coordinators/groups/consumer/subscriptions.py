"""What a group subscribes to, all members together, and what the topics look like.

A group gets a new epoch when either changes. The topics' side is kept as one number, the
metadata hash. It is stable over restarts; Kafka's is another, so a group taken over from a Kafka
directory gets one epoch more and no other harm.
"""

import hashlib
from collections.abc import Iterable, Mapping
from uuid import UUID

from headrace.coordinators.groups.consumer.state import GroupState
from headrace.coordinators.groups.messages import TopicsView
from headrace.coordinators.groups.records import ConsumerGroupMember, ResolvedRegex

Regexes = Mapping[str, ResolvedRegex]


def topics_of(member: ConsumerGroupMember, regexes: Regexes) -> frozenset[str]:
    """Names a member subscribes to, by name and by expression."""
    names = frozenset(member.topic_names)
    resolved = regexes.get(member.topic_regex) if member.topic_regex else None
    return names | frozenset(resolved.topics) if resolved else names


def topic_ids_of(
    member: ConsumerGroupMember, regexes: Regexes, topics: TopicsView
) -> frozenset[UUID]:
    """Ids of those of a member's topics that exist."""
    shapes = map(topics.shape, topics_of(member, regexes))
    return frozenset(shape.topic_id for shape in shapes if shape is not None)


def group_topics(
    state: GroupState,
    regexes: Regexes,
    *,
    without: Iterable[ConsumerGroupMember] = (),
    plus: ConsumerGroupMember | None = None,
) -> set[str]:
    """All names the group subscribes to once some members have gone or one has come."""
    names, patterns = state.name_counts, state.regex_counts
    gone = tuple(without)
    if gone or plus is not None:
        names, patterns = names.copy(), patterns.copy()
        for member in gone:
            names.subtract(member.topic_names)
            patterns[member.topic_regex or ""] -= 1
        if plus is not None:
            names.update(plus.topic_names)
            patterns[plus.topic_regex or ""] += 1
    found = {name for name, count in names.items() if count > 0}
    for regex, count in patterns.items():
        if count > 0 and regex in regexes:
            found.update(regexes[regex].topics)
    return found


def metadata_hash(names: Iterable[str], topics: TopicsView) -> int:
    """A signed 64-bit number that changes when one of these topics does; 0 for none of them."""
    digest = hashlib.blake2b(digest_size=8)
    is_empty = True
    for name in sorted(names):
        shape = topics.shape(name)
        if shape is not None:
            is_empty = False
            digest.update(shape.topic_id.bytes + shape.partition_count.to_bytes(4, "big"))
            digest.update(name.encode() + b"\0")
    return 0 if is_empty else int.from_bytes(digest.digest(), "big", signed=True)
