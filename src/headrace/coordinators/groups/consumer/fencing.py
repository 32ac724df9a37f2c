"""Members that go, of their own will or because their time is over."""

from collections.abc import Collection

from headrace.coordinators.groups.consumer.downgrade import Downgrade, downgrade, must_downgrade
from headrace.coordinators.groups.consumer.membership import removal
from headrace.coordinators.groups.consumer.state import GroupState
from headrace.coordinators.groups.consumer.subscriptions import group_topics, metadata_hash
from headrace.coordinators.groups.limits import ConsumerLimits
from headrace.coordinators.groups.messages import GroupOutcome, TopicsView
from headrace.coordinators.groups.records import (
    ConsumerGroupMetadata,
    GroupRecord,
    ResolvedRegex,
    Tombstone,
)


def fence(
    state: GroupState,
    limits: ConsumerLimits,
    member_ids: Collection[str],
    topics: TopicsView,
    now_ms: int,
) -> GroupOutcome | Downgrade:
    """Remove members. The group gets a new epoch, or becomes classic if only such are left."""
    if not member_ids:
        return GroupOutcome()
    if must_downgrade(state, limits, member_ids):
        return downgrade(state, topics, now_ms, without=member_ids, needs_rebalance=True)
    group_id = state.group_id
    records: list[GroupRecord] = []
    for member_id in member_ids:
        records += removal(group_id, member_id)
    gone = [state.members[member_id] for member_id in member_ids]
    left = state.regex_counts.copy()
    left.subtract(member.topic_regex or "" for member in gone)
    regexes = {regex: found for regex, found in state.regexes.items() if left[regex] > 0}
    records += [
        Tombstone(ResolvedRegex, (group_id, regex)) for regex in state.regexes.keys() - regexes
    ]
    names = group_topics(state, regexes, without=gone)
    new_hash = metadata_hash(names, topics)
    records.append(ConsumerGroupMetadata(group_id, state.epoch + 1, new_hash))
    return GroupOutcome(records)
