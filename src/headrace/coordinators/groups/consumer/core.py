"""What the parts of one group share: its durable state, its deadlines, its limits."""

from collections.abc import Callable

from headrace.coordinators.groups.consumer.deadlines import MemberDeadlines
from headrace.coordinators.groups.consumer.resolution import Resolution
from headrace.coordinators.groups.consumer.state import UNREVOKED_PARTITIONS, GroupState
from headrace.coordinators.groups.consumer.step import Step
from headrace.coordinators.groups.limits import ConsumerLimits
from headrace.coordinators.groups.messages import TopicsView
from headrace.coordinators.groups.records import ConsumerGroupMember, CurrentAssignment


class Core:
    """Only `state` is durable, and only `GroupState.apply` changes it."""

    def __init__(
        self,
        group_id: str,
        limits_for: Callable[[], ConsumerLimits],
        make_member_id: Callable[[str], str],
    ) -> None:
        self.state = GroupState(group_id)
        self.deadlines = MemberDeadlines()
        self.limits_for = limits_for
        self.make_member_id = make_member_id
        self.resolution = Resolution(self.state)
        # The topics have been looked at in this generation, for this epoch. A step whose
        # records were not written leaves the epoch as it was, so they are looked at again.
        self._looked_at: tuple[int, int] | None = None

    def new_step(self, topics: TopicsView, now_ms: int) -> Step:
        """Begin to work through a request."""
        return Step(self.state, self.limits_for(), topics, self.resolution, now_ms)

    def must_look_at(self, topics: TopicsView) -> bool:
        """Whether a topic may have changed since the last look."""
        return self._looked_at != (topics.generation, self.state.epoch)

    def looked_at(self, topics: TopicsView, epoch: int) -> None:
        """A step has taken in the topics as they are; with its records written this epoch holds."""
        self._looked_at = (topics.generation, epoch)

    def watch_revocation(
        self, member: ConsumerGroupMember, current: CurrentAssignment, now_ms: int
    ) -> None:
        """A member of the new protocol has its rebalance time-out to give up partitions."""
        if current.state == UNREVOKED_PARTITIONS:
            deadline_ms = now_ms + member.rebalance_timeout_ms
            self.deadlines.rebalance(member.member_id, deadline_ms, current.member_epoch)
        else:
            self.deadlines.rebalanced(member.member_id)
