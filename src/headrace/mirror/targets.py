"""Topics at the target: made ready for a copy, and given their own configs after it."""

from headrace.client.admin import BROKERS_DEFAULT
from headrace.mirror.endpoint import UNKNOWN_S, Endpoint, MirroredTopic
from headrace.mirror.errors import MirrorError
from headrace.mirror.identity import TARGET, gone_from_target, is_other, made_anew
from headrace.mirror.interface import MirrorListener
from headrace.mirror.plan import TopicPlan, copying_configs, final_configs
from headrace.mirror.state import COPYING, DONE, FOLLOWING, TopicNote
from headrace.mirror.writer import MAX_MESSAGE_BYTES


def prepare(
    target: Endpoint,
    plan: TopicPlan,
    *,
    name: str,
    target_cluster_id: str,
    replication_factor: int | None,
    is_following: bool,
) -> TopicNote:
    """Make the target topic ready to be written to; returns the note to keep of it."""
    source, note = plan.source, plan.note
    wanted = copying_configs(source.configs, MAX_MESSAGE_BYTES)
    presets = dict[str, str]()
    if plan.target is None:
        replicas = replication_factor or BROKERS_DEFAULT
        target.ensure_topic(source.name, source.partition_count, replicas, wanted)
    else:
        # What somebody set on a topic before the first copy is meant to stay.
        presets = plan.target.configs if note is None else note.presets
        if not (note and note.phase == FOLLOWING and is_following):
            target.alter_configs("topic", source.name, wanted)
        if plan.target.partition_count < source.partition_count:
            target.grow_topic(source.name, source.partition_count)
    made = _await_topic(target, source.name, source.partition_count)
    if plan.target is not None and is_other(plan.target.topic_id, made.topic_id):
        raise made_anew(TARGET, source.name, plan.target.topic_id, made.topic_id)
    is_released = note is not None and note.phase == FOLLOWING and is_following
    return TopicNote(
        name,
        # What an earlier version, or a broker of one, did not know is taken over here.
        source.topic_id or (note.source_topic_id if note else ""),
        made.topic_id or (note.target_topic_id if note else ""),
        plan.chain,
        FOLLOWING if is_released else COPYING,
        presets,
        target_cluster_id,
    )


def release(
    target: Endpoint,
    source: MirroredTopic,
    note: TopicNote,
    listener: MirrorListener,
    *,
    is_following: bool,
) -> TopicNote:
    """Give a complete copy the configs of the source; returns the new note."""
    phase = FOLLOWING if is_following else DONE
    configs = {**source.configs, **note.presets}
    facts = _await_topic(target, source.name, source.partition_count)
    wanted, skipped = final_configs(configs, facts.replication_factor, phase)
    for name, why in skipped.items():
        listener.note(f"{source.name}: {name} is not carried over: {why}")
    try:
        target.alter_configs("topic", source.name, wanted)
    except MirrorError:
        # One of them is refused, and with it all: find out which.
        for name, value in wanted.items():
            try:
                target.alter_configs("topic", source.name, {name: value})
            except MirrorError as error:
                listener.note(f"{source.name}: {name}={value} is not carried over: {error}")
    return note._replace(phase=phase)


def _await_topic(target: Endpoint, name: str, partitions: int) -> MirroredTopic:
    patience = target.patience(UNKNOWN_S)
    while True:
        found = target.topics([name]).get(name)
        if found is not None and found.partition_count >= partitions:
            return found
        if not patience.pause():
            raise gone_from_target(name, found.topic_id if found else "")
