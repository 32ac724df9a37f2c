"""Whether a topic is the one that was copied: ids compared, and what is said when they differ.

A name says nothing: a topic that was deleted and made again has the same, and so has one of another
cluster at the same address. Ids never come back. So a topic that has its id before a reading and
after it was the same topic all the time between.
"""

from typing import Final

from headrace.mirror.errors import MirrorError, MirrorIdentityError, MirrorRefusedError
from headrace.mirror.state import STATE_TOPIC
from headrace.model import TopicPartition

SOURCE: Final = "source"
TARGET: Final = "target"

_WITH_ANEW = "run again with --anew to copy it from the start"
_LEAVE_OUT = "or leave it out with --topics"


def from_the_start(topic: str) -> str:
    """What to do about a copy that cannot be gone on with."""
    return f"delete topic {topic} at the target and {_WITH_ANEW}"


def is_other(noted: str, found: str) -> bool:
    """Whether two ids are of two things. One that is not known is not compared."""
    return bool(noted and found and noted != found)


def beyond_repair(place: TopicPartition, what: str) -> MirrorError:
    """For a partition whose copy cannot be gone on with, and why."""
    return MirrorError(f"{place}: {what}. To copy it again, {from_the_start(place.topic)}")


def another_writer(place: TopicPartition, expected: int, found: int) -> MirrorError:
    """For a target that somebody else writes to."""
    return beyond_repair(
        place,
        f"a record came to lie at offset {found} of the target instead of {expected}: somebody "
        f"else writes to topic {place.topic} there, or another mirror does; stop that",
    )


def made_anew(
    side: str, topic: str, noted: str, found: str, *, is_empty: bool = False
) -> MirrorIdentityError:
    """For a topic that another one has taken the name of, at the target perhaps an empty one."""
    if topic == STATE_TOPIC:
        return _state_lost("deleted and made anew", f"topic id {noted} then, {found} now")
    now = "and is empty" if is_empty else "so its copy cannot be gone on with"
    way_out = _WITH_ANEW if is_empty else from_the_start(topic)
    return MirrorIdentityError(
        f"topic {topic} was deleted at the {side} and made anew (topic id {noted} then, {found} "
        f"now), {now}; {way_out}, {_LEAVE_OUT}"
    )


def gone_from_target(topic: str, noted: str) -> MirrorIdentityError:
    """For a copy that is not there any more."""
    if topic == STATE_TOPIC:
        return _state_lost("deleted", f"topic id {noted}")
    return MirrorIdentityError(
        f"topic {topic} was copied to the target, and is not there any more (topic id "
        f"{noted or 'not known'}); {_WITH_ANEW}, {_LEAVE_OUT}"
    )


def gone_from_source(topic: str) -> MirrorIdentityError:
    """For a topic that goes away while it is copied."""
    return MirrorIdentityError(
        f"topic {topic} was deleted at the source while it was copied, so the copy has only a part "
        f"of it; keep that or delete topic {topic} at the target, and run again for the others"
    )


def other_source(topic: str, owner: str, topic_id: str, source_id: str) -> MirrorRefusedError:
    """For a copy that came from another cluster than the one that is read now."""
    return MirrorRefusedError(
        f"topic {topic} at the target is the mirror of another cluster: of {owner} (topic id "
        f"{topic_id or 'not known'}), and --from is {source_id}; delete it there and run again, "
        f"{_LEAVE_OUT}"
    )


def other_target(topic: str, noted: str, found: str) -> MirrorIdentityError:
    """For notes that were written at another cluster, and came here with its data."""
    return MirrorIdentityError(
        f"the notes on topic {topic} at the target were written at another cluster: at {noted}, "
        f"and --to is {found}. Whether the copy came over whole is not known; "
        f"{from_the_start(topic)}, {_LEAVE_OUT}"
    )


def other_cluster(side: str, label: str, noted: str, found: str) -> MirrorIdentityError:
    """For an address at which another cluster answers while the mirror runs."""
    way_out = (
        "delete the copied topics at the target and run again"
        if side == SOURCE
        else "run again to copy everything to it"
    )
    return MirrorIdentityError(
        f"{label} is another cluster than it was when the copy began ({noted} then, {found} now); "
        f"bring the old one back, or {way_out}"
    )


def _state_lost(what: str, ids: str) -> MirrorIdentityError:
    return MirrorIdentityError(
        f"topic {STATE_TOPIC} at the target was {what} while the mirror ran ({ids}): what was "
        "known of the copies is gone; delete the copied topics at the target and run again"
    )
