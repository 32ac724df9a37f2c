"""What a request of one member sets off: new epoch, new target, reconciliation.

A step reads the state and gathers records; it changes nothing. It serves both protocols: a
heartbeat of the new one and a JoinGroup of a classic member end up here.
"""

from collections.abc import Mapping

from headrace.coordinators.groups.consumer.reconciliation import Reconciliation
from headrace.coordinators.groups.consumer.resolution import Resolution
from headrace.coordinators.groups.consumer.state import NOTHING, STABLE, GroupState
from headrace.coordinators.groups.consumer.subscriptions import (
    group_topics,
    metadata_hash,
    topic_ids_of,
)
from headrace.coordinators.groups.consumer.target import compute_target, may_assign
from headrace.coordinators.groups.limits import ConsumerLimits
from headrace.coordinators.groups.messages import TopicsView
from headrace.coordinators.groups.records import (
    Assignment,
    ConsumerGroupMember,
    ConsumerGroupMetadata,
    CurrentAssignment,
    GroupRecord,
    ResolvedRegex,
    TargetAssignmentEpoch,
    TargetAssignmentMember,
    Tombstone,
)


class Step:
    """One member's request, worked through against the group's state."""

    def __init__(
        self,
        state: GroupState,
        limits: ConsumerLimits,
        topics: TopicsView,
        resolution: Resolution,
        now_ms: int,
    ) -> None:
        self.state, self.limits, self.topics, self.now_ms = state, limits, topics, now_ms
        self.records: list[GroupRecord] = []
        self.epoch = state.epoch
        self.target_epoch = state.assignment_epoch
        self._resolution = resolution
        self._regexes: Mapping[str, ResolvedRegex] = state.regexes
        self._subscription_changed = False

    def update_member(
        self, before: ConsumerGroupMember, after: ConsumerGroupMember, *, look_at_topics: bool
    ) -> None:
        """Write the member if it has changed, and give the group a new epoch if that matters.

        `before` is what the state counts for this member: what it was, or a blank newcomer.
        """
        if after != before:
            self.records.append(after)
        changes_names = frozenset(after.topic_names) != frozenset(before.topic_names)
        changes_regex = self._update_regex(before.topic_regex or None, after.topic_regex or None)
        self._subscription_changed = changes_names or changes_regex
        # The epoch of an expression that is not resolved yet comes when it is.
        is_unresolved = bool(after.topic_regex) and after.topic_regex not in self._regexes
        changed = changes_names or (changes_regex and not is_unresolved)
        if not changed and (is_unresolved or not look_at_topics):
            return
        names = group_topics(self.state, self._regexes, without=(before,), plus=after)
        new_hash = metadata_hash(names, self.topics)
        if changed or new_hash != self.state.metadata_hash:
            self.epoch += 1
            self.records.append(ConsumerGroupMetadata(self.state.group_id, self.epoch, new_hash))

    def _update_regex(self, old: str | None, new: str | None) -> bool:
        """Let go of an expression nobody uses any more; a new one has to be one."""
        if old == new:
            return False
        state = self.state
        if old is not None and state.regex_counts[old] <= 1 and old in state.regexes:
            self._regexes = {regex: found for regex, found in state.regexes.items() if regex != old}
            self.records.append(Tombstone(ResolvedRegex, (state.group_id, old)))
        if new is not None:
            self._resolution.check(new)
        return True

    def assign(self, member: ConsumerGroupMember) -> Assignment:
        """The member's target; computed anew when the group has outgrown the one there is."""
        state = self.state
        if self.epoch <= state.assignment_epoch or not may_assign(state, self.limits, self.now_ms):
            before = state.static_members.get(member.instance_id or "", member.member_id)
            return state.target.get(before, NOTHING)
        targets = compute_target(state, self.limits, self.topics, self._regexes, member)
        for member_id, target in targets.items():
            if state.target.get(member_id) != target:
                self.records.append(TargetAssignmentMember(state.group_id, member_id, target))
        self.target_epoch = self.epoch
        self.records.append(TargetAssignmentEpoch(state.group_id, self.epoch, self.now_ms))
        return targets[member.member_id]

    def reconcile(
        self,
        member: ConsumerGroupMember,
        current: CurrentAssignment,
        target: Assignment,
        owned: Assignment | None,
    ) -> CurrentAssignment:
        """Bring the member nearer to its target, and write where it is now."""
        if (
            current.state == STABLE
            and current.member_epoch == self.target_epoch
            and not self._subscription_changed
        ):
            return current
        moved = Reconciliation(
            current,
            self.target_epoch,
            target,
            owned=owned,
            subscribed=topic_ids_of(member, self._regexes, self.topics),
            owner_of=self.state.owners.get,
            subscription_changed=self._subscription_changed,
        ).step()
        if moved != current:
            self.records.append(moved)
        return moved
