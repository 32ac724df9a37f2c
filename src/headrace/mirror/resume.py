"""Where to go on: what the checkpoints say, held against what lies at the target."""

from collections.abc import Iterable

from headrace.mirror.endpoint import Endpoint
from headrace.mirror.errors import MirrorError
from headrace.mirror.identity import another_writer, beyond_repair, from_the_start
from headrace.mirror.interface import MirrorListener
from headrace.mirror.partition_copy import Overlap, PartitionCopy, first_checkpoint
from headrace.mirror.reading import read
from headrace.mirror.state import PartitionCheckpoint
from headrace.model import TopicPartition
from headrace.patience import Patience

# A mirror that was killed may have requests under way that a broker still executes. They lie in
# its socket's buffer or wait for a follower; both is a matter of milliseconds.
SETTLE_S = 1.0
# A broker that is back but whose replicas are not holds its end offset back for this long at most.
_SETTLE_LIMIT_S = 60.0


def open_copies(
    source: Endpoint,
    target: Endpoint,
    checkpoints: dict[TopicPartition, PartitionCheckpoint | None],
    listener: MirrorListener,
) -> dict[TopicPartition, PartitionCopy]:
    """One copy a partition, each at the place it has to go on from."""
    starts = source.oldest_offsets(checkpoints)
    stops = source.visible_ends(checkpoints)
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
        copy.check_reach(starts[place])
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
    target: Endpoint, checkpoints: dict[TopicPartition, PartitionCheckpoint]
) -> dict[TopicPartition, int]:
    ends = target.visible_ends(checkpoints)
    if all(checkpoint.is_clean for checkpoint in checkpoints.values()):
        for place, checkpoint in checkpoints.items():
            if ends[place] > checkpoint.target:
                raise another_writer(place, checkpoint.target, ends[place])
    else:
        ends = _settled(target, ends)
    patience = target.patience(_SETTLE_LIMIT_S, first_pause_s=SETTLE_S)
    while lost := [place for place in checkpoints if ends[place] < checkpoints[place].target]:
        if not patience.pause():
            place = lost[0]
            raise beyond_repair(
                place,
                f"the target has {ends[place]} records, but acknowledged "
                f"{checkpoints[place].target}: it has lost some",
            )
        ends = _settled(target, target.visible_ends(checkpoints))
    return ends


def _settled(target: Endpoint, ends: dict[TopicPartition, int]) -> dict[TopicPartition, int]:
    """The end offsets, when they stand still and no in-sync replica is missing."""
    topics = {place.topic for place in ends}
    limit = Patience(_SETTLE_LIMIT_S)
    settling = target.patience(None, first_pause_s=SETTLE_S, longest_pause_s=SETTLE_S)
    while True:
        settling.pause()
        before, ends = ends, target.visible_ends(ends)
        is_waiting = _has_dead_in_sync_replicas(target, topics) and not limit.is_over
        if ends == before and not is_waiting:
            return ends


def _has_dead_in_sync_replicas(end: Endpoint, topics: Iterable[str]) -> bool:
    """Whether an in-sync replica lies on a broker that is not there: the end offset then stands
    still although the leader holds more."""
    metadata = end.metadata()
    return any(
        partition.leader is None or not set(partition.isr) <= metadata.brokers.keys()
        for name in topics
        if name in metadata.topics
        for partition in metadata.topics[name].partitions.values()
    )


def _read_overlaps(target: Endpoint, copies: Iterable[PartitionCopy]) -> None:
    overlaps = {copy.place: copy.overlap for copy in copies if copy.overlap is not None}
    stretches = {place: range(each.start, each.end) for place, each in overlaps.items()}
    for place, messages in read(target, stretches, is_committed_only=False):
        overlaps[place].put(messages)
