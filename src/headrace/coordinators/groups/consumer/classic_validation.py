"""What requests of classic members have to agree with, inside a group of the new protocol."""

from headrace.coordinators.groups.consumer.state import GroupState
from headrace.coordinators.groups.messages import (
    CONSUMER_PROTOCOL_TYPE,
    JoinRequest,
    SyncRequest,
)
from headrace.coordinators.groups.records import ClassicProtocols, ConsumerGroupMember
from headrace.errors import IllegalGenerationError, InconsistentProtocolError


def refuse_other_protocols(state: GroupState, member_id: str, request: JoinRequest) -> None:
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


def refuse_other_generation(
    member: ConsumerGroupMember, member_epoch: int, generation_id: int
) -> None:
    """A classic member's generation is its epoch."""
    if generation_id != member_epoch:
        raise IllegalGenerationError(
            f"The request generation id {generation_id} is not equal to the member epoch "
            f"{member_epoch} of member {member.member_id}."
        )


def refuse_other_choice(
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
