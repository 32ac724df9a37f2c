"""Members that speak the classic protocol inside a group of the new one (KIP-848, migration).

They go on with JoinGroup, SyncGroup and Heartbeat; what they get is what the broker assigns. A
generation is the member's epoch. "Join again" takes the place of the news that a heartbeat of
the new protocol would bring.
"""

from collections.abc import Sequence

from headrace.coordinators.errors import (
    FencedInstanceError,
    GroupError,
    GroupRequestError,
    IllegalGenerationError,
    InconsistentProtocolError,
    MemberIdRequiredError,
    RebalanceInProgressError,
    UnknownMemberError,
)
from headrace.coordinators.groups.consumer.core import Core
from headrace.coordinators.groups.consumer.downgrade import (
    downgrade,
    encode_for,
    must_downgrade_for,
)
from headrace.coordinators.groups.consumer.fencing import fence
from headrace.coordinators.groups.consumer.membership import (
    FoundMember,
    joining_member,
    known_member,
    known_static_member,
    refuse_if_full,
)
from headrace.coordinators.groups.consumer.state import (
    NOTHING,
    UNRELEASED_PARTITIONS,
    UNREVOKED_PARTITIONS,
    GroupState,
)
from headrace.coordinators.groups.consumer_protocol import Subscription, decode_subscription
from headrace.coordinators.groups.messages import (
    CONSUMER_PROTOCOL_TYPE,
    GroupOutcome,
    JoinReply,
    JoinRequest,
    LeaveResult,
    LeavingMember,
    SyncReply,
    SyncRequest,
    Ticket,
    TopicsView,
)
from headrace.coordinators.groups.records import (
    Assignment,
    ClassicProtocols,
    ConsumerGroupMember,
)
from headrace.protocol.errors import WireError


class ClassicMembers:
    """The classic members of one group, as their requests find them."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def join(
        self, request: JoinRequest, ticket: Ticket, topics: TopicsView, now_ms: int
    ) -> GroupOutcome:
        """Answer a JoinGroup, refusals too."""
        try:
            outcome, reply = self._join(request, topics, now_ms)
        except GroupError as error:
            outcome, reply = GroupOutcome(), JoinReply(error)
        outcome.answers.append((ticket, reply))
        return outcome

    def sync(
        self, request: SyncRequest, ticket: Ticket, topics: TopicsView, now_ms: int
    ) -> GroupOutcome:
        """Answer a SyncGroup, refusals too."""
        try:
            reply = self._sync(request, topics, now_ms)
        except GroupError as error:
            reply = SyncReply(error)
        return GroupOutcome(answers=[(ticket, reply)])

    def heartbeat(
        self, member_id: str, group_instance_id: str | None, generation_id: int, now_ms: int
    ) -> None:
        """Raise when the member has to join again, or is not one."""
        member, classic = self._known(member_id, group_instance_id)
        state, current = self._core.state, self._core.state.current_of(member.member_id)
        _refuse_other_generation(member, current.member_epoch, generation_id)
        self._core.deadlines.session(member.member_id, now_ms + classic.session_timeout_ms)
        if (
            current.member_epoch < _epoch_to_reach(state)
            or current.state == UNREVOKED_PARTITIONS
            or (
                current.state == UNRELEASED_PARTITIONS
                and not _waits_for_others(state, member.member_id)
            )
        ):
            self._must_join_again(member, now_ms)
            raise RebalanceInProgressError("The group is rebalancing, so a rejoin is needed.")

    def leave(
        self, members: Sequence[LeavingMember], topics: TopicsView, now_ms: int
    ) -> tuple[list[LeaveResult], GroupOutcome]:
        """Answer a LeaveGroup."""
        core = self._core
        results: list[LeaveResult] = []
        gone: list[str] = []
        for leaving in members:
            member_id, instance_id = leaving.member_id, leaving.group_instance_id
            try:
                found = self._leaving(member_id, instance_id)
            except GroupError as error:
                results.append(LeaveResult(member_id, instance_id, error))
                continue
            results.append(LeaveResult(member_id, instance_id, None))
            if found.member_id not in gone:
                gone.append(found.member_id)
        return results, fence(core.state, core.limits_for(), gone, topics, now_ms)

    def _join(
        self, request: JoinRequest, topics: TopicsView, now_ms: int
    ) -> tuple[GroupOutcome, JoinReply]:
        core = self._core
        state, limits = core.state, core.limits_for()
        if limits.migration_policy.lower() == "disabled":
            raise InconsistentProtocolError(
                f"Cannot join the consumer group {state.group_id} with the classic protocol "
                "because the group migration is disabled."
            )
        is_new = not request.member_id
        member_id = request.member_id or core.make_member_id(request.client_id)
        refuse_if_full(state, limits, member_id)
        _refuse_other_protocols(state, member_id, request)
        instance_id = request.group_instance_id
        if is_new and request.must_know_its_id and instance_id is None:
            error = MemberIdRequiredError("The group member needs to have a valid member id.")
            return GroupOutcome(), JoinReply(error, member_id)

        if instance_id is None or is_new:
            found = joining_member(state, member_id, instance_id, is_classic=True)
        else:
            member = known_static_member(state, member_id, instance_id)
            found = FoundMember(member, state.current_of(member_id))
        replaced = state.static_member(instance_id)
        is_downgrade = replaced is not None and must_downgrade_for(state, limits, replaced)
        subscription = _subscription(request)
        updated = _updated(found.member, request, subscription)

        step = core.new_step(topics, now_ms)
        step.records += found.records
        step.update_member(found.member, updated, look_at_topics=core.must_look_at(topics))
        owned = _to_ids(subscription, topics)
        current = found.current
        outcome: GroupOutcome
        if is_downgrade and replaced is not None:
            is_stale = step.epoch > state.assignment_epoch
            if not is_stale:
                target = state.target.get(replaced.member_id, NOTHING)
                current = step.reconcile(updated, current, target, owned)
            outcome = downgrade(
                state,
                topics,
                now_ms,
                without=(replaced.member_id,),
                joining=FoundMember(updated, current),
                needs_rebalance=is_stale,
            )
        else:
            current = step.reconcile(updated, current, step.assign(updated), owned)
            core.looked_at(topics, step.epoch)
            outcome = GroupOutcome(step.records)
            core.deadlines.session(member_id, now_ms + request.session_timeout_ms)
            core.deadlines.joined(member_id, now_ms + request.rebalance_timeout_ms)
        return outcome, JoinReply(
            None,
            member_id,
            current.member_epoch,
            CONSUMER_PROTOCOL_TYPE,
            request.protocols[0][0],
        )

    def _sync(self, request: SyncRequest, topics: TopicsView, now_ms: int) -> SyncReply:
        member, classic = self._known(request.member_id, request.group_instance_id)
        state, current = self._core.state, self._core.state.current_of(member.member_id)
        _refuse_other_generation(member, current.member_epoch, request.generation_id)
        _refuse_other_choice(member, classic, request)
        # One that is giving up partitions has joined; it goes on, and is called again later.
        if state.assignment_epoch > current.member_epoch and current.state != UNREVOKED_PARTITIONS:
            self._must_join_again(member, now_ms)
            raise RebalanceInProgressError(
                f"A new rebalance is triggered in group {state.group_id} and member "
                f"{member.member_id} should rejoin to catch up."
            )
        self._core.deadlines.synced(member.member_id)
        self._core.deadlines.session(member.member_id, now_ms + classic.session_timeout_ms)
        assignment = encode_for(classic.protocols, current.assigned, topics)
        return SyncReply(None, assignment, request.protocol_type, request.protocol_name)

    def _must_join_again(self, member: ConsumerGroupMember, now_ms: int) -> None:
        deadline_ms = now_ms + member.rebalance_timeout_ms
        self._core.deadlines.join_if_absent(member.member_id, deadline_ms)

    def _known(
        self, member_id: str, instance_id: str | None
    ) -> tuple[ConsumerGroupMember, ClassicProtocols]:
        """The member of a request that only classic members send."""
        state = self._core.state
        if instance_id is None:
            member = known_member(state, member_id)
        elif state.static_member(instance_id) is None:
            raise UnknownMemberError(
                f"Member with instance id {instance_id} is not a member of group {state.group_id}."
            )
        else:
            member = known_static_member(state, member_id, instance_id)
        if member.classic is None:
            raise UnknownMemberError(f"Member {member_id} does not use the classic protocol.")
        return member, member.classic

    def _leaving(self, member_id: str, instance_id: str | None) -> ConsumerGroupMember:
        if instance_id is None:
            return known_member(self._core.state, member_id)
        # An administrator names the instance only.
        member = self._core.state.static_member(instance_id)
        if member is None:
            raise UnknownMemberError(f"Instance id {instance_id} is unknown.")
        if member_id and member.member_id != member_id:
            raise FencedInstanceError(
                f"Static member {member_id} with instance id {instance_id} "
                f"was fenced by member {member.member_id}."
            )
        return member


def _updated(
    member: ConsumerGroupMember, request: JoinRequest, subscription: Subscription
) -> ConsumerGroupMember:
    return member._replace(
        instance_id=request.group_instance_id or member.instance_id,
        rack_id=subscription.rack_id or member.rack_id,
        client_id=request.client_id,
        client_host=request.client_host,
        topic_names=tuple(sorted(set(subscription.topics))),
        topic_regex=None,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        classic=ClassicProtocols(request.session_timeout_ms, request.protocols),
    )


def _subscription(request: JoinRequest) -> Subscription:
    try:
        return decode_subscription(request.protocols[0][1])
    except WireError as error:
        raise GroupRequestError(
            "Malformed embedded consumer protocol in subscription deserialization."
        ) from error


def _to_ids(subscription: Subscription, topics: TopicsView) -> Assignment:
    return {
        shape.topic_id: tuple(partitions)
        for name, partitions in subscription.owned_partitions.items()
        if (shape := topics.shape(name)) is not None
    }


def _epoch_to_reach(state: GroupState) -> int:
    """The newest epoch that has a target.

    Heartbeats of the new protocol make targets. Where only classic members are left, and the
    group may not become classic, their joins have to: so they are called for a new epoch, too.
    """
    has_others = state.classic_count < len(state.members)
    return state.assignment_epoch if has_others else state.epoch


def _waits_for_others(state: GroupState, member_id: str) -> bool:
    assigned = state.current_of(member_id).assigned
    return any(
        (topic, partition) in state.owners
        for topic, partitions in state.target.get(member_id, NOTHING).items()
        for partition in partitions
        if partition not in assigned.get(topic, ())
    )


def _refuse_other_protocols(state: GroupState, member_id: str, request: JoinRequest) -> None:
    """A joining member has to speak a protocol that all classic members speak."""
    names = {name for name, _ in request.protocols}
    spoken = [
        {name for name, _ in member.classic.protocols}
        for member in state.members.values()
        if member.classic is not None
    ]
    common = names.intersection(*spoken)
    if request.protocol_type != CONSUMER_PROTOCOL_TYPE or not common:
        raise InconsistentProtocolError(f"Member {member_id}'s protocols are not supported.")


def _refuse_other_generation(
    member: ConsumerGroupMember, member_epoch: int, generation_id: int
) -> None:
    """A classic member's generation is its epoch."""
    if generation_id != member_epoch:
        raise IllegalGenerationError(
            f"The request generation id {generation_id} is not equal to the member epoch "
            f"{member_epoch} of member {member.member_id}."
        )


def _refuse_other_choice(
    member: ConsumerGroupMember, classic: ClassicProtocols, request: SyncRequest
) -> None:
    """What a SyncGroup names has to be what the JoinGroup was answered with."""
    kind, name, chosen = request.protocol_type, request.protocol_name, classic.protocols[0][0]
    if kind is not None and kind != CONSUMER_PROTOCOL_TYPE:
        raise InconsistentProtocolError(
            f"The protocol type {kind} from member {member.member_id} request is not equal to "
            f"the group protocol type {CONSUMER_PROTOCOL_TYPE}."
        )
    if name is not None and name != chosen:
        raise InconsistentProtocolError(
            f"The protocol name {name} from member {member.member_id} request is not equal to "
            f"the protocol name {chosen} returned in the join response."
        )
