"""Where to go on: what the checkpoints say, held against what lies at the target."""

import time
from collections.abc import Iterable

from headrace.mirror.copying import another_writer, check_reach
from headrace.mirror.end import End
from headrace.mirror.errors import MirrorError
from headrace.mirror.identity import from_the_start
from headrace.mirror.listener import Listener
from headrace.mirror.partition_copy import Overlap, PartitionCopy, first_checkpoint
from headrace.mirror.questions import end_offsets, first_offsets, has_dead_in_sync_replicas
from headrace.mirror.reading import Stretch, read
from headrace.mirror.state import Checkpoint
from headrace.model import TopicPartition

# A mirror that was killed may have requests under way that a broker still executes. They lie in
# its socket's buffer or wait for a follower; both is a matter of milliseconds.
SETTLE_S = 1.0
# A broker that is back but whose replicas are not holds its end offset back for this long at most.
_SETTLE_LIMIT_S = 60.0


def open_copies(
    source: End,
    target: End,
    checkpoints: dict[TopicPartition, Checkpoint | None],
    listener: Listener,
) -> dict[TopicPartition, PartitionCopy]:
    """One copy a partition, each at the place it has to go on from."""
    starts = first_offsets(source, checkpoints)
    stops = end_offsets(source, checkpoints)
    known = {
        place: first_checkpoint(starts[place]) if checkpoint is None else checkpoint
        for place, checkpoint in checkpoints.items()
    }
    ends = _target_ends(target, known)
    copies = dict[TopicPartition, PartitionCopy]()
    for place, checkpoint in known.items():
        if stops[place] < checkpoint.source:
            raise MirrorError(
                f"{place}: the source ends at {stops[place]}, but was copied up to "
                f"{checkpoint.source}: it has lost messages. To copy what is left, "
                f"{from_the_start(place.topic)}"
            )
        is_more = ends[place] > checkpoint.target
        copy = PartitionCopy(
            place,
            checkpoint,
            caught_up_at=stops[place],
            overlap=Overlap(checkpoint.target, ends[place]) if is_more else None,
        )
        check_reach(copy, starts[place])
        if starts[place] > checkpoint.source:
            listener.note(
                f"{place}: the source has removed offsets {checkpoint.source} to {starts[place]} "
                "before they were copied"
            )
            copy.passed(starts[place])
        copies[place] = copy
    _read_overlaps(target, copies.values())
    return copies


def _target_ends(
    target: End, checkpoints: dict[TopicPartition, Checkpoint]
) -> dict[TopicPartition, int]:
    ends = end_offsets(target, checkpoints)
    if all(checkpoint.is_clean for checkpoint in checkpoints.values()):
        for place, checkpoint in checkpoints.items():
            if ends[place] > checkpoint.target:
                raise another_writer(place, checkpoint.target, ends[place])
    else:
        ends = _settled(target, ends)
    deadline = time.monotonic() + _SETTLE_LIMIT_S
    while lost := [place for place in checkpoints if ends[place] < checkpoints[place].target]:
        if time.monotonic() > deadline:
            place = lost[0]
            raise MirrorError(
                f"{place}: the target has {ends[place]} records, but acknowledged "
                f"{checkpoints[place].target}: it has lost some. To copy it again, "
                f"{from_the_start(place.topic)}"
            )
        target.pause(SETTLE_S)
        ends = _settled(target, end_offsets(target, checkpoints))
    return ends


def _settled(target: End, ends: dict[TopicPartition, int]) -> dict[TopicPartition, int]:
    """The end offsets, when they stand still and no in-sync replica is missing."""
    topics = {place.topic for place in ends}
    deadline = time.monotonic() + _SETTLE_LIMIT_S
    while True:
        target.pause(SETTLE_S)
        before, ends = ends, end_offsets(target, ends)
        is_waiting = has_dead_in_sync_replicas(target, topics) and time.monotonic() < deadline
        if ends == before and not is_waiting:
            return ends


def _read_overlaps(target: End, copies: Iterable[PartitionCopy]) -> None:
    overlaps = {copy.place: copy.overlap for copy in copies if copy.overlap is not None}
    stretches = {place: Stretch(each.start, each.end) for place, each in overlaps.items()}
    for place, messages in read(target, stretches, is_committed_only=False):
        overlaps[place].put(messages)
