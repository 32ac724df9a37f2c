"""What a group's coordinator refuses; `str` is what the client is told."""

from headrace.errors import HeadraceError


class GroupError(HeadraceError):
    """What a group's coordinator refuses."""


class CoordinatorNotAvailableError(GroupError):
    """The group's state cannot be written now; try again."""


class InvalidGroupIdError(GroupError):
    """The group's name cannot be one."""


class GroupNotFoundError(GroupError):
    """There is no group of this name, or none of the kind asked for."""


class NonEmptyGroupError(GroupError):
    """The group has members."""


class GroupFullError(GroupError):
    """The group has as many members as it may."""


class UnknownMemberError(GroupError):
    """The group has no member of this id."""


class MemberIdRequiredError(GroupError):
    """Join again with the id that comes with this (KIP-394)."""


class FencedInstanceError(GroupError):
    """Another member has taken over this group.instance.id."""


class UnreleasedInstanceError(GroupError):
    """A member still has this group.instance.id (KIP-848)."""


class IllegalGenerationError(GroupError):
    """The generation is not the group's."""


class RebalanceInProgressError(GroupError):
    """Join again: the group is between two generations."""


class InconsistentProtocolError(GroupError):
    """The member's protocols have none in common with the group's."""


class InvalidSessionTimeoutError(GroupError):
    """The session time-out is outside the broker's bounds."""


class GroupRequestError(GroupError):
    """A field of the request cannot be right."""


class FencedMemberEpochError(GroupError):
    """The member's epoch is over; join again with epoch 0 (KIP-848)."""


class StaleMemberEpochError(GroupError):
    """The member's epoch is behind; the next heartbeat brings the new one (KIP-848)."""


class UnsupportedAssignorError(GroupError):
    """No assignor of the broker has this name."""


class InvalidRegexError(GroupError):
    """The regular expression of a subscription cannot be read."""


class GroupVersionError(GroupError):
    """The request's version cannot speak of what groups of the new protocol have (KIP-848)."""


class OffsetMetadataTooLargeError(GroupError):
    """The text with a committed offset is longer than offset.metadata.max.bytes."""


class GroupSubscribedError(GroupError):
    """Offsets of a topic cannot be deleted while the group reads it."""
