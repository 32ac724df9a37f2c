"""ConsumerGroupHeartbeat: how a member of the new protocol joins, stays, and leaves.

A heartbeat that has no news and gets none is answered after a few comparisons.
"""

from headrace.coordinators.groups.consumer.core import Core
from headrace.coordinators.groups.consumer.fencing import fence
from headrace.coordinators.groups.consumer.membership import (
    FoundMember,
    joining_member,
    known_member,
    known_static_member,
    refuse_if_full,
    refuse_other_epoch,
)
from headrace.coordinators.groups.consumer.state import STABLE
from headrace.coordinators.groups.consumer.validation import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    STATIC_LEAVE_EPOCH,
    validate_heartbeat,
)
from headrace.coordinators.groups.limits import ConsumerLimits
from headrace.coordinators.groups.messages import (
    ConsumerHeartbeatReply,
    ConsumerHeartbeatRequest,
    GroupOutcome,
    TopicsView,
)
from headrace.coordinators.groups.records import ConsumerGroupMember, CurrentAssignment


class Heartbeats:
    """The members of the new protocol, as their requests find them."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def answer(
        self, request: ConsumerHeartbeatRequest, topics: TopicsView, now_ms: int
    ) -> tuple[ConsumerHeartbeatReply, GroupOutcome]:
        """Answer a heartbeat, a join or a leave."""
        limits = self._core.limits_for()
        if self._has_no_news(request, topics):
            self._core.deadlines.session(request.member_id, now_ms + limits.session_timeout_ms)
            return ConsumerHeartbeatReply(
                request.member_id, request.member_epoch, limits.heartbeat_interval_ms, None
            ), GroupOutcome()
        validate_heartbeat(request, limits)
        if request.member_epoch in (LEAVE_EPOCH, STATIC_LEAVE_EPOCH):
            return self._leave(request, topics, now_ms)

        found = self._find_member(request, limits)
        updated = _updated(found.member, request)
        step = self._core.new_step(topics, now_ms)
        step.records += found.records
        step.update_member(found.member, updated, look_at_topics=self._core.must_look_at(topics))
        target = step.assign(updated)
        current = step.reconcile(updated, found.current, target, request.owned)
        self._core.looked_at(topics, step.epoch)

        member_id = updated.member_id
        self._core.deadlines.session(member_id, now_ms + limits.session_timeout_ms)
        if current is not found.current:
            self._core.watch_revocation(updated, current, now_ms)
        must_tell = _is_full(request) or current.assigned != found.current.assigned
        return ConsumerHeartbeatReply(
            member_id,
            current.member_epoch,
            limits.heartbeat_interval_ms,
            current.assigned if must_tell else None,
        ), GroupOutcome(step.records)

    def _has_no_news(self, request: ConsumerHeartbeatRequest, topics: TopicsView) -> bool:
        """Whether a heartbeat only says "still here", and there is nothing to tell it either."""
        state = self._core.state
        current = state.current.get(request.member_id)
        if (
            current is None
            or request.member_epoch <= JOIN_EPOCH
            or not request.member_epoch == current.member_epoch == state.epoch
            or current.state != STABLE
            or state.assignment_epoch != state.epoch
            or self._core.must_look_at(topics)
            or (state.regex_counts and self._core.resolution.is_due(topics))
        ):
            return False
        member = state.members.get(request.member_id)
        return (
            member is not None
            and request.topic_names is None
            and request.topic_regex is None
            and request.rebalance_timeout_ms == -1
            and request.server_assignor is None
            and request.rack_id is None
            and request.instance_id == member.instance_id
            and request.client_id == member.client_id
            and request.client_host == member.client_host
            and member.classic is None
        )

    def _find_member(
        self, request: ConsumerHeartbeatRequest, limits: ConsumerLimits
    ) -> FoundMember:
        state = self._core.state
        refuse_if_full(state, limits, request.member_id)
        if request.member_epoch == JOIN_EPOCH:
            member_id = request.member_id or self._core.make_member_id(request.client_id)
            return joining_member(state, member_id, request.instance_id, is_classic=False)
        if request.instance_id is None:
            member = known_member(state, request.member_id)
        else:
            member = known_static_member(state, request.member_id, request.instance_id)
        current = state.current_of(member.member_id)
        refuse_other_epoch(current, request.member_epoch, request.owned)
        return FoundMember(member, current)

    def _leave(
        self, request: ConsumerHeartbeatRequest, topics: TopicsView, now_ms: int
    ) -> tuple[ConsumerHeartbeatReply, GroupOutcome]:
        state = self._core.state
        if request.instance_id is None:
            member = known_member(state, request.member_id)
        else:
            member = known_static_member(state, request.member_id, request.instance_id)
        reply = ConsumerHeartbeatReply(member.member_id, request.member_epoch, 0, None)
        if request.member_epoch == STATIC_LEAVE_EPOCH:
            return reply, GroupOutcome([_gone_for_a_while(state.current_of(member.member_id))])
        return reply, fence(state, self._core.limits_for(), (member.member_id,), topics, now_ms)


def _updated(member: ConsumerGroupMember, request: ConsumerHeartbeatRequest) -> ConsumerGroupMember:
    """The member with what the request tells; what it leaves out stays."""
    names, timeout_ms = request.topic_names, request.rebalance_timeout_ms
    return member._replace(
        instance_id=request.instance_id if request.instance_id is not None else member.instance_id,
        rack_id=request.rack_id if request.rack_id is not None else member.rack_id,
        client_id=request.client_id,
        client_host=request.client_host,
        topic_names=member.topic_names if names is None else tuple(sorted(set(names))),
        topic_regex=member.topic_regex if request.topic_regex is None else request.topic_regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        server_assignor=request.server_assignor or member.server_assignor,
        classic=None,
    )


def _is_full(request: ConsumerHeartbeatRequest) -> bool:
    """Whether the member tells everything: on joining, and after an error. It is told all, too."""
    if request.member_epoch == JOIN_EPOCH:
        return True
    subscribes = request.topic_names is not None or request.topic_regex is not None
    return request.rebalance_timeout_ms != -1 and subscribes and request.owned is not None


def _gone_for_a_while(current: CurrentAssignment) -> CurrentAssignment:
    """A static member that will be back: it keeps what it has, for its session's time."""
    return current._replace(
        member_epoch=STATIC_LEAVE_EPOCH,
        pending_revocation={},
        pending_epochs={},
        assigned_epochs={topic: (0,) * len(found) for topic, found in current.assigned.items()},
    )
